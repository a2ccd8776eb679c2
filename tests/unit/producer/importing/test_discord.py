from __future__ import annotations

from producer.importing import Notes, Speaker, preview
from tests.unit.producer.importing.exports import FIXTURES, messages, skipped, when

CHANNEL = FIXTURES / "discord_channel.json"


def test_imp_11_people_go_by_their_ids_and_nicknames_are_aliases() -> None:
    notes = Notes()
    found = messages(CHANNEL, notes=notes)
    assert [(item.speaker_name, item.message) for item in found] == [
        ("rita", "@Novato chegou"),  # who "Novato" is, a mention does not say
        ("novato_", "moro em @Chefe :peixe:"),
        ("rita (9)", "sou outra"),
    ]
    assert [item.speaker_aliases for item in found] == [("Chefe",), ("Novato",), ()]
    assert notes.aliases == {"rita": {"Chefe"}, "novato_": {"Novato"}}
    assert preview(CHANNEL)["aliases"] == {"rita": ["Chefe"], "novato_": ["Novato"]}


def test_times_keep_their_zone_and_ids_are_the_platforms() -> None:
    (first, *_) = messages(CHANNEL)
    assert (first.message_id, first.session_id) == ("discord:100", "20")
    assert str(when(first)) == "2024-05-01 22:30:00-03:00"


def test_bots_are_passed_over_unless_the_map_names_them() -> None:
    assert [reason.split(" (")[0] for reason in skipped(CHANNEL)] == [
        "system message", "picture, file or the like without a caption", "bot message",
    ]  # fmt: skip
    kept = messages(CHANNEL, speakers={"10": Speaker(role="assistant")})
    assert [(item.speaker_name, item.role) for item in kept][-1] == ("helper", "assistant")
