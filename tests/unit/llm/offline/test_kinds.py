"""Kinds of sentences, a few of each in both languages: how people open, leave out, turn round and hint."""

from __future__ import annotations

import pytest

from tests.unit.llm.offline.asking import edges, extract, told


@pytest.mark.parametrize(
    "message",
    [
        "Got it, makes sense.",
        "Right, carry on then.",
        "Thanks a million, saved my day.",
        "Fantastic, that did the trick!",
        "Please book a table for two.",
        "Book a flight to Rome for next week.",
        "Draft an email to my boss.",
        "Valeu, ajudou demais!",
        "Obrigado, era isso mesmo.",
        "Boa, agora entendi.",
        "Me traduz esse texto pro inglês, por favor.",
        "Marca uma reunião pra sexta.",
        "Tranquilo, sem pressa.",
        "The weather is lovely.",
    ],
)
def test_thanks_and_requests_tell_nothing(message: str) -> None:
    assert told(message) == []


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Scratch that, I live in Bergen.", "Bruna lives in Bergen"),
        ("Small correction: I'm 29, not 28.", "Bruna is 29, not 28"),
        ("I meant Tuesday, the exam is on Tuesday.", "Bruna's exam is on Tuesday"),
        ("I just wanted to let you know that I moved to Oslo.", "Bruna moved to Oslo"),
        ("Ops, digitei errado: moro em Ilhéus.", "Bruna mora em Ilhéus"),
        ("Quis dizer que a cirurgia é dia 6 de maio.", "A cirurgia de Bruna é dia 6 de maio"),
        ("Só queria avisar que me mudei pra Olinda.", "Bruna se mudou pra Olinda"),
    ],
)
def test_corrections_and_openings_give_way_to_what_they_say(message: str, text: str) -> None:
    assert ("Bruna", text) in told(message)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Not a huge fan of horror films.", "Bruna is not a huge fan of horror films"),
        ("Allergic to cats, sadly.", "Bruna is allergic to cats, sadly"),
        ("Never been to Asia.", "Bruna has never been to Asia"),
        ("Learning the cello at the moment.", "Bruna is learning the cello at the moment"),
        ("Born and raised in Cardiff.", "Bruna was born and raised in Cardiff"),
        ("Morando em Betim desde janeiro.", "Bruna está morando em Betim desde janeiro"),
        ("Grávida de cinco meses.", "Bruna está grávida de cinco meses"),
        ("Viciada em café.", "Bruna é viciada em café"),
    ],
)
def test_subjects_left_out(message: str, text: str) -> None:
    assert told(message) == [("Bruna", text)]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("These days I'm freelancing as an illustrator.", "Bruna is freelancing as an illustrator these days"),
        ("In my spare time I restore old radios.", "Bruna restores old radios in their spare time"),
        ("When I was a kid we had a parrot.", "Bruna had a parrot when Bruna was a kid"),
        ("Hoje em dia trabalho como freelancer.", "Bruna trabalha como freelancer hoje em dia"),
        ("Quando eu era criança, morava em Ouro Preto.", "Bruna morava em Ouro Preto quando era criança"),
        ("Faz três anos que moro em Itajaí.", "Bruna mora em Itajaí há três anos"),
    ],
)
def test_what_opens_a_sentence_goes_to_its_end(message: str, text: str) -> None:
    assert told(message) == [("Bruna", text)]


def test_coordinated_subjects_are_the_speaker_and_the_other() -> None:
    assert told("Me and Imani got together at university.") == [
        ("Bruna", "Bruna and Imani got together at university"),
    ]
    assert edges("Me and Imani got together at university.") == {("Bruna", "partner_of", "Imani")}
    assert told("We split up, me and Gareth.") == [("Bruna", "Bruna and Gareth split up")]
    assert told("A gente se separou em março, eu e a Tainá.") == [("Bruna", "Bruna e Tainá se separaram em março")]
    message = "Eu e meu marido viemos morar em Joinville."
    assert told(message) == [("Bruna", "Bruna e seu marido vieram morar em Joinville")]
    assert edges(message) == {("Bruna", "lives_in", "Joinville")}


def test_what_is_mine_or_does_something_to_me_is_mine() -> None:
    assert told("Chess is my passion.") == [("Bruna", "Chess is Bruna's passion")]
    assert told("Coffee gives me migraines.") == [("Bruna", "Coffee gives Bruna migraines")]
    assert told("Lasanha é meu prato favorito.") == [("Bruna", "Lasanha é o prato favorito de Bruna")]
    assert told("Altura me dá pânico.") == [("Bruna", "Altura dá pânico a Bruna")]
    # Somebody stays somebody.
    assert ("Hannah", "Hannah is Bruna's best friend") in told("Hannah is my best friend.")


def test_there_is_one_such_thing_in_a_life() -> None:
    (fact,) = extract("The wedding is on June 14th, not June 12th.")["facts"]
    assert (fact["text"], fact["event_date"]) == ("Bruna's wedding is on June 14th, not June 12th", "2025-06-14")
    assert fact["confidence_level"] == "strong_inference"
    assert told("My birthday's on August 9th.") == [("Bruna", "Bruna's birthday is on August 9th")]
    assert told("O aluguel aumentou de novo.") == [("Bruna", "O aluguel de Bruna aumentou de novo")]
    # Nobody's own funeral: whose it is, is not said.
    assert told("The funeral is on Thursday.") == [("Bruna", "The funeral that Bruna mentioned is on Thursday")]


def test_a_word_for_a_person_and_their_name() -> None:
    assert told("My lad Callum just passed his driving test!") == [
        ("Callum", "Callum is Bruna's lad"),
        ("Callum", "Callum just passed his driving test"),
    ]
    assert ("Neide", "Neide abriu um salão") in told("Minha comadre Neide abriu um salão.")
    assert ("Jade", "Jade é colega de quarto de Bruna") in told("Minha colega de quarto, a Jade, canta bem.")


def test_companies_are_things_of_their_own_and_cities_no_employers() -> None:
    assert told("A empresa do Murilo faz software.") == [("empresa do Murilo", "A empresa do Murilo faz software")]
    assert told("Paula's car broke down.") == [("Paula", "Paula's car broke down")]
    assert edges("A Paula trabalha em Várzea Grande.") == set()
    assert edges("A Paula trabalha na Natura.") == {("Paula", "works_at", "Natura")}
    assert edges("I moved over to a startup called Plumbline in May.") == {("Bruna", "works_at", "Plumbline")}
    assert edges("Saí do Itaú e fui pra uma fintech chamada Moeda.") == {
        ("Bruna", "former_employee_of", "Itaú"),
        ("Bruna", "works_at", "Moeda"),
    }
    assert edges("I'm doing a PhD in marine biology at Exeter.") == {("Bruna", "studies_at", "Exeter")}
    assert edges("Estou no terceiro ano de medicina na UFSC.") == {("Bruna", "studies_at", "UFSC")}
    assert edges("Started a new job at Corbel & Finch on Monday.") == {("Bruna", "works_at", "Corbel & Finch")}


@pytest.mark.parametrize(
    "message",
    [
        "I'm moving to Denmark in the autumn.",
        "Vou me mudar pra Vitória em agosto.",
        "I have an MBA from INSEAD.",
        "My brother married a Brazilian woman.",
        "My uncle left me his watch.",
        "Estou estudando pro concurso do TRT.",
        "I've lived in Tokyo, Osaka and now Kobe.",
        "We had to put our old dog Max to sleep.",
    ],
)
def test_no_edge_is_made_up(message: str) -> None:
    assert edges(message) == set()


def test_pets_by_name() -> None:
    assert edges("We adopted two rescue greyhounds, Pickle and Moss.") == {
        ("Bruna", "owns", "Pickle"),
        ("Bruna", "owns", "Moss"),
    }
    assert edges("Temos um coelho chamado Pipoca e um papagaio chamado Zeca.") == {
        ("Bruna", "owns", "Pipoca"),
        ("Bruna", "owns", "Zeca"),
    }
    assert ("Bruna", "Bruna has a puppy called Luna") in told("We got a puppy last week! Her name is Luna.")


def test_every_text_names_its_subject_and_keeps_no_first_person() -> None:
    assert told("Meu pai é caminhoneiro e quase nunca tá em casa.") == [
        ("pai", "O pai de Bruna é caminhoneiro"),
        ("pai", "O pai de Bruna quase nunca está em casa"),
    ]
    assert told("Não falo francês, só arranho um pouco de italiano.") == [
        ("Bruna", "Bruna não fala francês"),
        ("Bruna", "Bruna só arranha um pouco de italiano"),
    ]
    assert told("Sou celíaca, então não como pão.")[1] == ("Bruna", "Bruna não come pão")
    assert told("I hate winter, so every January I fly to Madeira.") == [
        ("Bruna", "Bruna hates winter"),
        ("Bruna", "Bruna flies to Madeira every January"),
    ]
    assert told("I live in Graz with my boyfriend, who's a dentist.")[1] == (
        "boyfriend",
        "Bruna's boyfriend is a dentist",
    )


def test_the_last_one_spoken_of_is_she() -> None:
    facts = told("Fern is Kyle's girlfriend. She is Scottish.")
    assert ("Fern", "Fern is Scottish") in facts
    facts = told("My sister Nora lives in Lyon. Her son Paul is four.")
    assert ("Paul", "Paul is Nora's son") in facts
    assert ("Ingrid", "Ingrid is Bruna's boss") in told("I've got a new boss. She's called Ingrid.")
