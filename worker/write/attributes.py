"""The attribute catalogue: the keys that are known from the start, their other spellings, and which go together."""

from __future__ import annotations

NAMESPACES = frozenset(["user", "person", "pet", "place", "organization", "trip", "family", "work", "health", "goal"])

_CATALOGUE = {
    "user": "language timezone",
    "person": "name full_name nickname birthday birthplace age gender pronouns nationality origin city neighborhood "
    "address occupation education marital_status spouse partner children_count religion hobby favorite_food "
    "favorite_color favorite_music favorite_team spoken_languages phone email height personality",
    "pet": "name species breed age",
    "place": "country climate",
    "organization": "name industry headquarters size website",
    "trip": "destination departure_date return_date companions",
    "family": "mother father siblings children",
    "work": "employer job_title department salary schedule start_date colleagues manager",
    "health": "allergy diet condition medication blood_type",
    "goal": "objective deadline progress",
}
# Sixty-odd keys. Nearly every last part is unique, so that a bare one ("city") says which key it is.
CATALOGUE = frozenset(f"{namespace}.{name}" for namespace, names in _CATALOGUE.items() for name in names.split())

ALIASES: dict[str, str] = {
    alias: key
    for key, aliases in {
        "person.city": "person.location person.residence person.home person.hometown_current person.lives_in "
        "person.current_city person.city_of_residence user.city user.location location residence home_city",
        "person.occupation": "person.job person.profession person.career person.role user.occupation job profession "
        "work.occupation work.profession work.role_name",
        "work.employer": "person.employer person.company person.workplace work.company work.organization "
        "work.workplace user.employer company workplace",
        "work.job_title": "work.title work.position person.job_title person.title work.job position",
        "person.birthday": "person.birth_date person.date_of_birth person.birthdate person.dob birth_date dob",
        "person.birthplace": "person.place_of_birth person.born_in person.hometown hometown",
        "person.spouse": "person.husband person.wife family.spouse husband wife",
        "person.partner": "person.girlfriend person.boyfriend person.fiance person.fiancee family.partner girlfriend "
        "boyfriend",
        "person.marital_status": "person.relationship_status person.civil_status relationship_status civil_status",
        "person.name": "user.name",
        "person.nickname": "user.nickname nick",
        "person.age": "user.age age",
        "person.spoken_languages": "person.languages person.language languages",
        "person.favorite_food": "person.food_preference person.favourite_food food.favorite favorite.food",
        "person.favorite_color": "person.favourite_color person.favourite_colour favorite.color",
        "person.hobby": "person.hobbies person.interest person.interests hobbies",
        "person.education": "person.degree person.school person.university",
        "person.nationality": "person.citizenship",
        "person.phone": "person.phone_number phone_number",
        "person.email": "person.email_address email_address",
        "health.allergy": "health.allergies person.allergy person.allergies allergies",
        "health.diet": "person.diet health.dietary_restriction health.dietary_restrictions person.dietary_preference",
        "health.condition": "health.conditions health.disease health.diagnosis",
        "health.medication": "health.medications health.medicine",
        "organization.industry": "organization.sector",
        "family.children": "person.children family.kids",
        "family.siblings": "family.brothers family.sisters",
        "goal.objective": "goal.target goal.goal",
    }.items()
    for alias in aliases.split()
}

# Keys that tell of one and the same matter: a fact of one may replace a fact of another.
_MATTERS: tuple[frozenset[str], ...] = (
    frozenset({"person.marital_status", "person.spouse", "person.partner"}),
    frozenset({"person.city", "person.neighborhood", "person.address"}),
    frozenset({"person.occupation", "work.job_title"}),
)


def same_matter(one: str | None, other: str | None) -> bool:
    """Whether facts with these attribute keys can be about the same thing: one has none, they are equal, or related."""
    if not one or not other or one == other:
        return True
    return any({one, other} <= matter for matter in _MATTERS)
