"""Plain words by what they stand for: heads that are no names, things of a life, companies, people beyond the roles."""

from __future__ import annotations

import re

from worker.llm.offline import english, portuguese
from worker.llm.offline.text import fold, word_set

# At the head of a sentence anything has a capital: these are no names there.
_NO_NAMES = word_set(
    "thanks thank thx cheers ta great cool nice fine good right alright fair perfect brilliant awesome fantastic "
    "amazing excellent lovely wonderful gotcha understood noted sure oops whoops ugh phew yay hooray bravo congrats "
    "congratulations welcome please sorry wow whoa hmm me him us them mine myself nobody everybody everyone "
    "somebody someone anyone nothing something everything anything there most some any all both each every many "
    "few several another other others such same either neither none people kids children parents friends folks "
    "never always often sometimes usually rarely finally recently lately nowadays maybe perhaps only even still "
    "already almost yet again once twice soon ever instead otherwise besides however therefore anyway meanwhile "
    "one two three four five six seven eight nine ten first second third next last half "
    "coffee tea milk sugar bread cheese meat fish pork beef chicken sushi pizza pasta chocolate wine beer alcohol "
    "gluten dairy lactose peanuts nuts eggs seafood shellfish food breakfast lunch dinner music jazz rock pop rap "
    "opera football soccer tennis golf chess rugby cricket basketball volleyball yoga pilates swimming running "
    "gardening cooking baking sport sports work school home life love money time sleep heights spiders snakes crowds "
    "dogs cats flying winter summer spring autumn rain snow heat cold noise stress anxiety books movies films games "
    "photography history maths math science art travel weekends mornings mondays fridays pollen dust "
    "valeu obrigado obrigada vlw blz beleza show top massa legal bacana otimo otima perfeito perfeita tranquilo "
    "tranquila certo claro entendi entendido fechado combinado opa ops eita ih epa perdao desculpa desculpe nossa "
    "caramba parabens tchau abraco abracos beijo beijos tomara oba eba ufa puxa poxa uau credo "
    "tudo todo todos toda todas nada ninguem alguem cada muito muita muitos muitas pouco pouca varios varias outro "
    "outra outros outras algo qualquer mesmo quase talvez ainda tambem geralmente normalmente ultimamente "
    "atualmente recentemente finalmente felizmente infelizmente antigamente hoje amanha agora depois antes logo "
    "dois duas tres quatro cinco seis sete oito nove dez primeiro segundo terceiro "
    "cafe cha leite acucar pao queijo carne peixe porco frango chocolate vinho cerveja alcool camarao amendoim "
    "ovo lasanha feijoada churrasco acai comida fritura musica samba pagode forro funk sertanejo futebol volei "
    "basquete tenis xadrez natacao corrida ciclismo trilha ioga academia trabalho escola vida amor dinheiro tempo "
    "sono altura barata aranha cobra multidao cachorro gato praia montanha calor frio chuva inverno verao outono "
    "primavera barulho estresse ansiedade livro livros filme filmes jogos fotografia historia matematica ciencia "
    "arte viagem gente pessoal galera poeira polen"
)
_ABSTRACT = re.compile(r"(?:ings?|tion|sion|ness|ment|ity|ism|ção|ções|dade|mente|ismo|agem|ência|ância)$", re.I)


def is_common_word(word: str) -> bool:
    """Whether a lone capitalised word at the head of a sentence is rather a plain word than somebody's name."""
    folded = fold(word)
    if folded in _NO_NAMES or (len(folded) > 5 and _ABSTRACT.search(word)):
        return True
    return bool(re.search(r"(?:ar|er|ir)$", folded)) and portuguese.is_infinitive(folded)


# What one of a life there is, so that "the wedding", "o aluguel" is the author's (or the last one's spoken of).
EVENTS = word_set(
    "wedding funeral exam exams surgery operation interview graduation move trip flight party shower christening "
    "baptism ceremony honeymoon divorce appointment viva defence defense hearing closing engagement reunion birth "
    "anniversary match gig concert recital tournament race presentation deadline apresentacao torneio casamento "
    "velorio enterro prova provas cirurgia operacao entrevista formatura mudanca viagem "
    "voo festa batizado cerimonia consulta exame audiencia defesa parto lua-de-mel noivado divorcio aniversario "
    "vestibular cha"
)
# Events that are seldom one's own alone.
SHARED = word_set(
    "gig concert recital tournament race presentation deadline show funeral party shower christening baptism "
    "ceremony hearing reunion birth match flight velorio enterro festa "
    "batizado "
    "cerimonia audiencia parto voo cha"
)
HOUSEHOLD = word_set(
    "kids children baby babies twins girls boys newborn toddler flat house apartment rent mortgage landlord lease "
    "car van garden boiler commute job in-laws grandkids grandchildren criancas bebe gemeos gemeas meninas meninos "
    "netos netas apartamento ape casa aluguel financiamento carro moto emprego condominio quintal"
)
ORGANISATIONS = word_set(
    "company firm startup start-up business shop store restaurant cafe bakery agency practice clinic school band "
    "team studio brewery bank charity newspaper magazine brand salon garage gym pub bar law-firm consultancy "
    "hospital university college workshop factory label publisher nonprofit ngo fintech cooperative foundation hotel "
    "airline museum theatre theater zoo scaleup consulting ministry farm library call-centre "
    "empresa firma loja startup negocio restaurante lanchonete padaria agencia clinica escola banda time equipe "
    "estudio cervejaria banco ong jornal revista marca salao oficina academia bar pousada consultoria hospital "
    "universidade faculdade escritorio fabrica editora construtora transportadora seguradora corretora produtora "
    "gravadora farmacia mercado supermercado fintech cooperativa fundacao hotel museu teatro biblioteca confeitaria "
    "pizzaria livraria papelaria creche multinacional grafica"
)
# Words for people that make no edge of their own; a name after them is that person's all the same.
_PEOPLE = word_set(
    "lad lass missus hubby bloke fella guy girl boy man woman lady pal chum nan nana gran nanny grandad great-gran "
    "half cara-metade metade kiddo toddler newborn sis bro stepbrother stepsister half-brother half-sister "
    "step-brother step-sister "
    "great-aunt great-uncle great-grandmother great-grandfather next-door-neighbour pen-pal penpal classmate "
    "schoolmate playmate bandmate lodger tenant client customer cousin nurse vet guide chef cook lawyer solicitor "
    "accountant therapist physio dentist barber surgeon pastor priest rabbi imam intern apprentice assistant "
    "secretary director ceo editor agent broker midwife babysitter au-pair colleague date crush widow nemesis idol "
    "comadre compadre parca parceiro parceira brother mano mana caçula cacula garoto garota menino menina moleque "
    "bisavo bisneto bisneta tataravo padrinho comadre conhecido conhecida xodo ficante rolo paquera crush colega "
    "chefe diretor diretora gerente sindico sindica porteiro porteira faxineira diarista baba cuidadora "
    "cabeleireiro cabeleireira barbeiro manicure advogado advogada contador contadora terapeuta fisioterapeuta "
    "personal nutricionista psiquiatra pediatra ginecologista veterinario veterinaria dentista pastor padre "
    "inquilino inquilina cliente fornecedor socia socio estagiario estagiaria aluno aluna orientador orientadora "
    "meio-irmao meia-irma irmaozinho irmazinha filhinho filhinha netinho netinha"
)
_NO_PEOPLE = word_set(
    "computer printer router trailer lighter mower toaster blender speaker charger number paper river water summer "
    "winter dinner father's letter motor monitor scooter tractor color cover order answer flower tower tumor liver "
    "shoulder ladder cooler freezer heater boiler center theater theatre chapter poster folder server browser laptop "
    "corridor mirror terror error sector calor amor valor motor setor computador celular carregador ventilador "
    "liquidificador humor favor sabor odor tumor dinheiro banheiro chuveiro travesseiro roteiro"
)
_PERSON_ENDING = re.compile(
    r"(?:er|or|ist|ian|mate|eur|man|woman|eiro|eira|ista|dor|dora|ólogo|óloga|ologo|ologa|tor|tora|sor|sora)$"
)


def is_person_noun(word: str) -> bool:
    """A word for a person ("lad", "hairdresser", "comadre"), by a list and by its ending."""
    folded = fold(word)
    if folded in _NO_PEOPLE:
        return False
    return folded in _PEOPLE or (len(folded) > 4 and bool(_PERSON_ENDING.search(folded)))


def is_base_verb(word: str) -> bool:
    """A bare English verb: at the head of a sentence an order, not a name."""
    return english.base(word) is not None
