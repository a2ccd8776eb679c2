"""The demo's conversation: some years of one person's life, in the two languages that she speaks.

Plain sentences, because without a model the offline reader reads them. Each has a message_id, so that a second demo
adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

AGENT = "demo"


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the sample, and what it is there to show."""

    occurred_at: str
    speaker: str
    text: str
    shows: str


CONVERSATION = (
    Line("2021-03-08T09:12:00-03:00", "Marina", "I live in Porto Alegre.", "a fact and a relation"),
    Line("2021-03-08T09:15:00-03:00", "Marina", "I work at Studio Aurora as a designer.", "a job"),
    Line("2021-06-12T20:40:00-03:00", "Marina", "Minha irmã se chama Carolina.", "a relative, in Portuguese"),
    Line("2021-06-12T20:41:00-03:00", "Marina", "A Carolina mora em Lisboa.", "a person known by name"),
    Line("2021-11-02T18:05:00-03:00", "Marina", "Everyone calls me Nina.", "a nickname"),
    Line("2022-02-14T11:30:00-03:00", "Marina", "Eu adoro café.", "a preference"),
    Line("2022-05-20T08:55:00-03:00", "Marina", "Adotei um cachorro chamado Biscuit ontem.", "a relative date"),
    Line("2022-09-01T07:45:00-03:00", "Marina", "I don't like cilantro.", "a negation"),
    Line("2023-01-16T10:00:00-03:00", "Marina", "I moved to Florianópolis yesterday.", "a move"),
    Line("2023-01-20T19:22:00-03:00", "Marina", "Eu moro em Florianópolis.", "what is known already"),
    Line("2023-04-03T09:00:00-03:00", "Marina", "I left Studio Aurora and joined Lumen Labs.", "a change of job"),
    Line("2023-08-11T21:10:00-03:00", "Marina", "A Carolina agora mora em Berlim.", "a relative's move"),
    Line("2024-02-29T12:00:00-03:00", "Marina", "Eu não gosto mais de café.", "a preference that ended"),
    Line("2024-07-07T16:30:00-03:00", "Marina", "My favorite color is green.", "a favourite"),
    Line("2024-07-07T16:31:00-03:00", "Marina", "Actually, my favorite color is blue.", "a correction"),
    Line("2025-05-05T08:20:00-03:00", "Marina", "Good morning!", "nothing to remember"),
)
