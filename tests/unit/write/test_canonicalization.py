"""Attribute keys in one spelling (behaviour: 10), the rule without a database."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from producer.contract import MemoryConfig
from worker.write.attributes import ALIASES, CATALOGUE, NAMESPACES, same_matter
from worker.write.canonicalization import canonicalise, normalize_key, validate_proposed_key
from worker.write.corrections import is_user_correction

CONFIG = MemoryConfig(
    extra_attribute_keys=("food.preference", "Garden.Soil Type"),
    attribute_aliases={"Wohnort": "person.city", "person.city_name": "person.city"},
    extra_namespaces=("garden",),
)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("Personal Info", "personal.info"),
        ("food_preference", "food_preference"),
        ("  Person-City ", "person.city"),
        ("work\temployer", "work.employer"),
        ("person. city", "person.city"),
        ("", ""),
    ],
)
def test_normalize_key(raw: str, key: str) -> None:
    assert normalize_key(raw) == key


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("person.city", True),
        ("person.home_2.street.number", True),
        ("person", False),
        ("person.a.b.c.d", False),
        ("person..city", False),
        ("person.2nd", False),
        ("person.São", False),
        ("Person.city", False),
        ("_person.city", False),
        ("food.preference", False),
        ("garden.soil", False),
        (f"person.{'x' * 57}", True),
        (f"person.{'x' * 58}", False),
    ],
)
def test_validate_proposed_key(key: str, good: bool) -> None:
    assert validate_proposed_key(key) is good


def test_namespaces_of_the_deployment() -> None:
    assert validate_proposed_key("garden.soil", {"garden"})
    assert not validate_proposed_key("garden.soil", set())


@pytest.mark.parametrize(
    ("raw", "key", "action", "matched"),
    [
        ("person.city", "person.city", "allow", "catalogue"),
        ("Work Employer", "work.employer", "allow", "catalogue"),
        ("food preference", "food.preference", "allow", "extra"),
        ("garden.soil.type", "garden.soil.type", "allow", "extra"),
        ("person.shoe_size", "person.shoe_size", "allow", "registry"),
        ("wohnort", "person.city", "map", "alias"),
        ("person.profession", "person.occupation", "map", "alias"),
        ("food_preference", "food.preference", "map", "dotted_variant"),
        ("work_job_title", "work.job_title", "map", "dotted_variant"),
        ("city", "person.city", "map", "suffix"),
        ("shoe_size", "person.shoe_size", "map", "suffix"),
        ("garden.fence", "garden.fence", "propose", "open_catalogue"),
        ("pet.trick.favorite", "pet.trick.favorite", "propose", "open_catalogue"),
    ],
)
def test_the_first_rule_that_hits_wins(raw: str, key: str, action: str, matched: str) -> None:
    found = canonicalise(raw, CONFIG, ["person.shoe_size"])
    assert (found.key, found.action, found.metadata["matched_by"]) == (key, action, matched)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("mood", "parts"),
        ("food.mood", "namespace"),
        ("", "blank"),
        ("name", "ambiguous_suffix"),
        ("person.ö", "malformed"),
        (f"person.{'x' * 60}", "too_long"),
    ],
)
def test_what_is_no_good_is_dropped_with_its_reason(raw: str, reason: str) -> None:
    found = canonicalise(raw, CONFIG)
    assert (found.key, found.action, found.metadata["reason"]) == (None, "drop", reason)


def test_the_catalogue_is_what_it_says() -> None:
    assert 55 <= len(CATALOGUE) <= 75
    assert all(validate_proposed_key(key) for key in CATALOGUE)
    assert {key.partition(".")[0] for key in CATALOGUE} == NAMESPACES
    assert set(ALIASES.values()) <= CATALOGUE
    assert not CATALOGUE & ALIASES.keys()


def test_canonicalising_twice_changes_nothing() -> None:
    for raw in (*CATALOGUE, *ALIASES, "city", "garden.fence"):
        once = canonicalise(raw, CONFIG)
        assert once.key is not None
        assert canonicalise(once.key, CONFIG).key == once.key


def test_keys_of_one_matter() -> None:
    assert same_matter("person.spouse", "person.partner")
    assert same_matter(None, "person.city")
    assert not same_matter("person.occupation", "work.employer")


@pytest.mark.parametrize(
    ("old", "new", "corrected"),
    [
        (("person.city", "Natal"), ("person.city", "Lima"), True),
        (("person.city", "São Paulo"), ("person.city", "sao paulo."), False),
        (("person.city", "Natal"), ("person.origin", "Lima"), False),
        (("person.city", None), ("person.city", "Lima"), False),
        ((None, "Natal"), (None, "Lima"), False),
        (("person.city", "서울"), ("person.city", "부산"), True),
    ],
)
def test_is_user_correction(
    old: tuple[str | None, str | None], new: tuple[str | None, str | None], corrected: bool
) -> None:
    def fact(pair: Collection[str | None]) -> dict[str, str | None]:
        return dict(zip(("attribute_key", "value"), pair, strict=True))

    assert is_user_correction(fact(old), fact(new)) is corrected
