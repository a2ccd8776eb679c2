"""The words that turn a sentence round, by language: plain tables, read by ``worker.write.polarity``.

Words stand folded: lower case, no Latin accents. A table is used only for a text that looks like its language,
because the same letters mean other things elsewhere ("no" is "in the" in Portuguese, "not" in Spanish).
"""

from __future__ import annotations

from dataclasses import dataclass

_Words = frozenset[str]


def _words(text: str) -> _Words:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True, slots=True)
class Language:
    """One language's words.

    ``common`` tells the language; ``negators`` each turn their clause round; ``concord`` words only repeat a negation
    that stands in the same clause already ("não vi ninguém"), and make one where none does; ``harmless`` phrases hold
    a negator and negate nothing ("not only"); ``endings`` are phrases that say that something is over.
    """

    common: _Words
    negators: _Words
    concord: _Words = frozenset()
    harmless: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()


LANGUAGES: dict[str, Language] = {
    "en": Language(
        common=_words(
            "the is are was were has have had does do did of and to with for at in on she he they it her his "
            "their likes "
            "like lives works i'm i my can will would there any longer anymore from by but"
        ),
        negators=_words(
            "not no never cannot cant dont doesnt didnt wont isnt wasnt without none nobody nothing neither "
            "nor nowhere "
            "dislike dislikes disliked disliking hate hates hated hating detest detests detested loathe "
            "loathes loathed "
            "despise despises unable refuse refuses refused avoid avoids avoided lacks lacked"
        ),
        harmless=("not only", "not just", "no doubt", "without doubt", "no matter", "nothing but", "no problem"),
        endings=("stopped", "quit", "gave up", "given up", "ceased"),
    ),
    "pt": Language(
        common=_words(
            "o os a as um uma de do da dos das em na nas nos e com para pra por que se seu sua ao foi vai "
            "tem mora "
            "trabalha gosta quer faz fica estuda joga nasceu comprou adora eu meu minha voce ele ela mais ja "
            "esta posso "
            "nao como mas ano anos dia sou"
        ),
        negators=_words("nao sem detesta detesto odeia odeio odiava detestava desgosta evita recusa"),
        concord=_words("nunca jamais nem nenhum nenhuma ninguem tampouco"),
        harmless=("nao so", "nao apenas", "nao somente", "sem duvida", "sem querer"),
        endings=("deixou de", "deixei de", "parou de", "parei de", "largou o", "largou a", "desistiu de"),
    ),
    "es": Language(
        common=_words(
            "el la los las un una de del en y con para por que se su al fue va tiene vive trabaja gusta le me es muy "
            "quiere hace yo mi ella pero ya esta puede puedo come ano anos como soy"
        ),
        negators=_words("no sin odia odio odiaba detesta detesto evita"),
        concord=_words("nunca jamas ni ningun ninguno ninguna nadie tampoco"),
        harmless=("no solo", "no solamente", "sin duda", "sin querer"),
        endings=("dejo de", "deje de", "ha dejado de", "paro de"),
    ),
    "fr": Language(
        common=_words(
            "le la les un une de du des en et avec pour par que se son sa au aux est a il elle je mon ma dans "
            "sur aime "
            "habite travaille mais plus ans suis peut vit qui ne pas"
        ),
        negators=_words("ne n pas non sans deteste hait evite"),
        concord=_words("jamais rien aucun aucune personne ni guere pas plus point"),
        harmless=("pas seulement", "non seulement", "sans doute", "pas mal de"),
        endings=("arrete de", "cesse de"),
    ),
    "de": Language(
        common=_words(
            "der die das ein eine einen einer und mit fur von zu im in am auf ist sind war hat haben er sie "
            "es ich mein "
            "meine seine ihre wohnt lebt arbeitet mag aber nicht kein keine kann isst"
        ),
        negators=_words(
            "nicht kein keine keinen keiner keinem keines nie niemals niemand nichts ohne hasst verabscheut weder"
        ),
        harmless=("nicht nur", "ohne zweifel", "nicht mehr als"),
        endings=("aufgehort",),
    ),
    "it": Language(
        common=_words(
            "il lo la i gli le un una di del della dei in e con per che si suo sua al e ha vive abita lavora "
            "piace ama "
            "mio mia ma anni sono puo nel nella lei lui non"
        ),
        negators=_words("non no senza odia odio detesta evita"),
        concord=_words("mai niente nulla nessuno nessuna nessun neanche nemmeno ne"),
        harmless=("non solo", "non soltanto", "senza dubbio"),
        endings=("smesso di", "smise di"),
    ),
    "ru": Language(
        common=frozenset(),
        negators=_words("не нет без нельзя ненавидит ненавижу ненавидел ненавидела"),
        concord=_words("ни никогда ничего никто никому никого никакой никакая нигде"),
        harmless=("не только", "нет сомнений", "без сомнения"),
        endings=("перестал", "перестала", "бросил", "бросила"),
    ),
    "ar": Language(
        common=frozenset(),
        negators=_words("لا ليس ليست لست لم لن غير بدون ولا ولم ولن فلا يكره تكره أكره"),
        endings=("توقف عن", "توقفت عن"),
    ),
    "hi": Language(common=frozenset(), negators=_words("नहीं नही मत बिना")),
}

# Scripts without word gaps: negators as substrings, after what only looks like one is taken out.
CHINESE_HARMLESS = _phrases(
    "不得不 不同 不错 不錯 不过 不過 不久 差不多 对不起 對不起 不断 不斷 不仅 不僅 不但 不只 不光 不管 不论 "
    "不論 无论 無論 未来 未來 "
    "特别 特別 别人 別人 分别 分別 别墅 別墅 性别 性別 告别 告別 级别 級別 区别 區別 个别 個別 非常 除非 非洲 "
    "是非 无锡 無錫 没关系 "
    "沒關係 不知不觉 忍不住 了不起 说不定 說不定"
)
CHINESE_NEGATORS = _phrases("不 没 沒 无 無 未 别 別 非 讨厌 討厭 戒了 戒掉 停止")
JAPANESE_HARMLESS = _phrases(
    "なければならない なければなりません なくてはならない なければいけない ないといけない ざるを得ない "
    "かもしれない かもしれません "
    "に違いない 間違いない 少ない 危ない 切ない もったいない つまらない 汚ない だけでなく だけではなく"
)
JAPANESE_NEGATORS = _phrases(
    "ない なかった ません なくなっ なくて 嫌い きらい 苦手 やめた 辞めた やめまし 辞めまし ずに"
)
KOREAN_HARMLESS = ("안녕", "잘못", "연못", "틀림없", "끊임없", "뿐만", "못지않", "않을 수 없", "뿐 아니라", "수밖에 없")
KOREAN_NEGATORS = _phrases("않 없 아니 못 싫 끊었 그만두")
KOREAN_WORDS = _words("안")

# Each pair: where one text has a word of one side only and the other text one of the other side only, they cannot be
# the same claim. Not negations: "married" and "divorced" may both be true, at different times.
_OPPOSITES = (
    "joined hired started entered entrou comecou contratado contratada entro empezo began | left resigned fired quit "
    "stopped saiu demitiu demitido demitida pediu salio renuncio",
    "bought buys comprou comprei compro achete kaufte | sold sells vendeu vendi vendio vendu verkaufte",
    "married marries casou casado casada caso | divorced divorces separou separado separada divorciou divorciado "
    "divorciada widowed viuvo viuva single solteiro solteira",
    "born nasceu nasci nacio ne geboren | died morreu faleceu murio mort gestorben dead",
    "won wins venceu ganhou gano gagne | lost loses perdeu perdio perdu",
    "increased rises aumentou subiu subio | decreased falls diminuiu caiu bajo reduziu",
    "more mais mas plus mehr piu | less menos moins weniger meno fewer",
    "before antes avant vor prima | after depois despues apres nach dopo",
    "love loves loved adora amo ama adoro aime liebt likes like gosta gosto gusta mag piace "
    "| hate hates hated dislikes dislike odeia odeio odia detesta detesto hasst",
    "morning manha manana matin | evening night noite noche soir afternoon tarde",
    "mother mae madre mere mutter | father pai padre pere vater",
    "brother irmao hermano frere bruder | sister irma hermana soeur schwester",
    "son filho hijo fils sohn | daughter filha hija fille tochter",
    "husband marido esposo mari | wife esposa mulher mujer femme",
    "good bom boa bueno buena bon bonne gut | bad ruim mau ma malo mala mauvais schlecht",
    "open aberto aberta abierto | closed fechado fechada cerrado",
    "hot quente caliente chaud | cold frio fria froid kalt",
    "喜欢 喜歡 爱 愛 好き | 讨厌 討厭 嫌い",
    "结婚 結婚 | 离婚 離婚",
    "любит нравится | ненавидит",
    "купил купила | продал продала",
)
OPPOSITES: tuple[tuple[_Words, _Words], ...] = tuple(
    (_words(one), _words(other)) for one, other in (pair.split(" | ") for pair in _OPPOSITES)
)

# "used to live" is another claim than "lives".
PAST_MARKERS = (
    "used to", "formerly", "former", "previously", "no longer", "anymore", "any longer", "costumava", "antigamente",
    "ja nao", "nao mais", "antiga", "antigo", "solia", "ya no", "antiguamente", "autrefois", "ne plus", "fruher",
    "nicht mehr", "non piu", "больше не", "раньше",
)  # fmt: skip

# Words of one language that would be missed by every numeral rule. "one" is left out: it is an article in most.
NUMBER_WORDS: dict[str, int] = {
    word: value
    for value, words in {
        2: "two dois duas dos deux zwei due два две",
        3: "three tres trois drei tre три",
        4: "four quatro cuatro quatre vier quattro четыре",
        5: "five cinco cinq funf cinque пять",
        6: "six seis sechs sei шесть",
        7: "seven sete siete sept sieben sette семь",
        8: "eight oito ocho huit acht otto восемь",
        9: "nine nove nueve neuf neun девять",
        10: "ten dez diez dix zehn dieci десять",
        11: "eleven onze once elf undici",
        12: "twelve doze doce douze zwolf dodici dozen duzia",
        13: "thirteen treze trece",
        14: "fourteen quatorze catorze",
        15: "fifteen quinze quince",
        16: "sixteen dezesseis",
        17: "seventeen dezessete",
        18: "eighteen dezoito",
        19: "nineteen dezenove",
        20: "twenty vinte veinte vingt zwanzig venti двадцать",
        30: "thirty trinta treinta trente",
        40: "forty quarenta cuarenta",
        50: "fifty cinquenta cincuenta",
        60: "sixty sessenta",
        70: "seventy setenta",
        80: "eighty oitenta ochenta",
        90: "ninety noventa",
        100: "hundred cem cien cento cent hundert",
        1000: "thousand mil mille tausend",
    }.items()
    for word in words.split()
}  # fmt: skip
# Numbers in one language and everyday words in another: only with that language's other words about.
NUMBER_WORDS_OF: dict[str, str] = {"dos": "es", "due": "it", "sei": "it", "once": "es", "elf": "de", "sept": "fr"}

MONTHS: dict[str, int] = {
    word: value
    for value, words in {
        1: "january janeiro enero janvier januar gennaio января январе январь يناير",
        2: "february fevereiro febrero fevrier februar febbraio февраля феврале февраль فبراير",
        3: "march marco marzo mars marz марта марте март مارس",
        4: "april abril avril aprile апреля апреле апрель أبريل",
        5: "maio mayo maggio мая мае май مايو",
        6: "june junho junio juin juni giugno июня июне июнь يونيو",
        7: "july julho julio juillet juli luglio июля июле июль يوليو",
        8: "august agosto aout августа августе август أغسطس",
        9: "september setembro septiembre septembre settembre сентября сентябре сентябрь سبتمبر",
        10: "october outubro octubre octobre oktober ottobre октября октябре октябрь أكتوبر",
        11: "november novembro noviembre novembre ноября ноябре ноябрь نوفمبر",
        12: "december dezembro diciembre decembre dezember dicembre декабря декабре декабрь ديسمبر",
    }.items()
    for word in words.split()
}  # fmt: skip
WEEKDAYS: dict[str, int] = {
    word: value
    for value, words in {
        0: "monday segunda-feira lunes lundi montag lunedi понедельник",
        1: "tuesday terca-feira terca martes mardi dienstag martedi вторник",
        2: "wednesday quarta-feira miercoles mercredi mittwoch mercoledi среду",
        3: "thursday quinta-feira jueves jeudi donnerstag giovedi четверг",
        4: "friday sexta-feira viernes vendredi freitag venerdi пятницу",
        5: "saturday sabado samedi samstag sabato субботу",
        6: "sunday domingo dimanche sonntag domenica воскресенье",
    }.items()
    for word in words.split()
}  # fmt: skip
DAYS: dict[str, int] = {
    word: value
    for value, words in {
        -1: "yesterday ontem ayer hier gestern ieri вчера أمس 昨天 昨日 어제",
        0: "today hoje hoy aujourd'hui heute oggi сегодня اليوم 今天 今日 오늘",
        1: "tomorrow amanha demain morgen domani завтра غدا 明天 明日 내일",
    }.items()
    for word in words.split()
}  # fmt: skip
