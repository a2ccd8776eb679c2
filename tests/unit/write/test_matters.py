"""Facts that are certainly about different things, and those of which only a model can say."""

from __future__ import annotations

import pytest

from worker.write.matters import of_another_matter


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("O Davi administra o GitHub da Nortec", "O Davi é gerente de compliance na Nortec"),
        ("Davi administers Nortec's GitHub", "Davi is compliance manager at Nortec"),
        ("Davi enseña Python en Nortec", "Davi trabaja en Nortec"),
        ("Davi likes jazz", "Davi lives in Natal"),
        ("Davi mora em Natal", "Davi gosta de praia"),
        ("Davi is married to Ana", "Davi works at Nortec"),
        ("Davi tem 34 anos", "Davi trabalha na Nortec"),
        ("Davi fala francês", "Davi mora em Paris"),
    ],
)
def test_other_matters(new: str, old: str) -> None:
    assert of_another_matter(new, old, ["Davi"])
    assert of_another_matter(old, new, ["Davi"])


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Davi moved to Austin", "Davi lives in São Paulo"),
        ("Davi moved to Orion Tech as head of engineering", "Davi works at Vertix"),
        ("Davi se mudou para o Rio", "Davi mora em Natal"),
        ("Davi runs a bakery", "Davi is a nurse"),
        ("Davi teaches maths", "Davi is an engineer"),
        ("Davi is based in Lima", "Davi lives in Quito"),
        ("Davi became a pilot", "Davi works as a nurse"),
        ("Davi is divorced", "Davi is married to Ana"),
        ("Davi is single", "Davi is dating Ana"),
        ("Davi hates tea", "Davi likes tea"),
        ("Davi sold the car", "Davi has a car"),
        ("ダビは東京に住んでいる", "ダビは音楽が好きだ"),
        ("Davi left Nortec", "Davi is compliance manager at Nortec"),
        ("Davi fez 35 anos", "Davi tem 34 anos"),
    ],
)
def test_what_only_a_model_can_tell(new: str, old: str) -> None:
    assert not of_another_matter(new, old, ["Davi"])
