"""What WhatsApp itself writes into a chat, in the languages of its phones: placeholders, notices, halves of the day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

# The half of the day, by its mark without dots, spaces and case. "noon" is 12:xx to 1:xx after it.
HALVES: Mapping[str, Literal["am", "pm", "noon"]] = {
    **dict.fromkeys(("am", "ص", "上午", "오전", "午前", "πμ", "de", "öö", "sa", "pg", "dop", "पूर्वाह्न", "fm", "ap",
                     "凌晨", "早上", "清晨", "קז", "ق.ظ".replace(".", ""), "прпл", "пробед", "ipar", "צ"), "am"),
    **dict.fromkeys(("pm", "م", "下午", "오후", "午後", "μμ", "du", "ös", "ch", "ptg", "odp", "अपराह्न", "em", "ip",
                     "晚上", "傍晚", "ب.ظ".replace(".", ""), "слпл", "слобед"), "pm"),
    "中午": "noon",
}  # fmt: skip
_DOTTED = {"am": r"a\.?\s?m\.?", "pm": r"p\.?\s?m\.?", "πμ": r"π\.?\s?μ\.?", "μμ": r"μ\.?\s?μ\.?",
           "قظ": r"ق\.?\s?ظ\.?", "بظ": r"ب\.?\s?ظ\.?", "de": r"de\.?", "du": r"du\.?", "dop": r"dop\.?",
           "odp": r"odp\.?", "прпл": r"пр\.\s?пл\.", "слпл": r"сл\.\s?пл\.", "пробед": r"пр\.\s?об\.",
           "слобед": r"сл\.\s?об\."}  # fmt: skip
# Longest first, so that no mark is taken for its beginning.
HALF_PATTERN = "|".join(_DOTTED.get(mark, re.escape(mark)) for mark in sorted(HALVES, key=len, reverse=True))

# "at" between date and time, as old versions wrote it.
AT_WORDS = r"um|às|as|à|a las|a la|alle ore|alle|kl\.?|klo|at|в|о|ob|la|om|lúc|pukul|saat"

_OMITTED = (
    "image omitted", "video omitted", "audio omitted", "sticker omitted", "gif omitted", "document omitted",
    "contact card omitted", "video note omitted", "media omitted",
    "imagem ocultada", "vídeo omitido", "áudio ocultado", "figurinha omitida", "gif omitido", "documento omitido",
    "cartão do contato omitido", "imagem não revelada", "sticker não revelado", "gif não revelada",
    "mensagem de vídeo omitida",
    "imagen omitida", "video omitido", "audio omitido", "sticker omitido", "tarjeta de contacto omitida",
    "nota de video omitida", "multimedia omitido",
    "image absente", "vidéo absente", "audio omis", "sticker omis", "gif retiré", "document manquant",
    "fiche contact manquante",
    "bild weggelassen", "video weggelassen", "audio weggelassen", "sticker weggelassen", "gif weggelassen",
    "dokument weggelassen", "kontaktkarte ausgelassen", "videonachricht weggelassen",
    "immagine omessa", "video omesso", "audio omesso", "sticker non incluso", "gif esclusa", "documento omesso",
    "scheda contatto omessa",
    "afbeelding weggelaten", "video weggelaten", "audio weggelaten", "sticker weggelaten", "gif weggelaten",
    "document weggelaten", "contactkaart weggelaten",
    "изображение отсутствует", "видео отсутствует", "аудиофайл отсутствует", "стикер не добавлен", "gif отсутствует",
    "görüntü dahil edilmedi", "video dahil edilmedi", "ses dahil edilmedi", "çıkartma dahil edilmedi",
    "pominięto grafikę", "pominięto film", "pominięto plik audio", "pominięto naklejkę",
    "gambar tidak disertakan", "video tidak disertakan", "audio tidak disertakan", "stiker tidak disertakan",
    "bild utelämnad", "video utelämnad", "ljud utelämnat",
    "画像が省略されました", "動画が省略されました", "音声が省略されました",
    "画像は含まれていません", "動画は含まれていません",
    "忽略图片", "忽略视频", "忽略音频", "图像已忽略", "略過圖片", "이미지 생략됨", "동영상 생략됨", "사진 생략됨",
    "لم يتم إدراج الصورة", "لم يتم إدراج الفيديو", "לא נכללה תמונה", "התמונה הושמטה",
)  # fmt: skip
_DELETED = frozenset((
    "this message was deleted", "you deleted this message", "this message was deleted by admin",
    "esta mensagem foi apagada", "mensagem apagada", "você apagou esta mensagem", "apagou esta mensagem",
    "essa mensagem foi apagada", "eliminou esta mensagem", "esta mensagem foi eliminada",
    "se eliminó este mensaje", "este mensaje fue eliminado", "eliminaste este mensaje",
    "ce message a été supprimé", "vous avez supprimé ce message",
    "diese nachricht wurde gelöscht", "du hast diese nachricht gelöscht",
    "questo messaggio è stato eliminato", "hai eliminato questo messaggio",
    "dit bericht is verwijderd", "dit bericht werd verwijderd", "je hebt dit bericht verwijderd",
    "данное сообщение удалено", "сообщение удалено", "вы удалили данное сообщение",
    "bu mesaj silindi", "bu mesajı sildiniz", "ta wiadomość została usunięta", "pesan ini telah dihapus",
    "anda menghapus pesan ini", "det här meddelandet raderades", "このメッセージは削除されました", "此消息已被删除",
    "此訊息已刪除", "삭제된 메시지입니다", "تم حذف هذه الرسالة", "הודעה זו נמחקה",
))  # fmt: skip
_EDITED = frozenset((
    "this message was edited", "mensagem editada", "se editó este mensaje", "ce message a été modifié",
    "diese nachricht wurde bearbeitet", "questo messaggio è stato modificato", "dit bericht is bewerkt",
    "сообщение изменено", "данное сообщение изменено", "bu mesaj düzenlendi", "pesan ini diedit",
))  # fmt: skip
_WAITING = (
    "waiting for this message", "aguardando mensagem", "esperando el mensaje", "en attente de ce message",
    "warten auf diese nachricht", "in attesa di questo messaggio",
)  # fmt: skip
# Between these two ends of the line, in every language: "end-to-end".
_ENCRYPTED = re.compile(
    r"end-to-end|ponta a ponta|extremo a extremo|bout en bout|ende-zu-ende|сквозн|uçtan uca|端到端|端對端|点对点|"
    r"종단간|エンドツーエンド|بين الطرفين|מקצה|totalsträckskrypt|dari ujung ke ujung|"
    r"koncov|végpontok közötti|od końca do końca",
    re.I,
)
_POLL = re.compile(r"(?:poll|enquete|sondagem|encuesta|sondage|umfrage|sondaggio|опрос|anket)\s?:", re.I)
_PLACE = re.compile(
    r"(?:live )?"
    r"(?:location|localização|ubicación|localisation|position|standort|posizione|locatie|местоположение|konum)"
    r"\s?:\s*https?://\S+",
    re.I,
)
_FILE = (
    r"[^\n<>]{0,200}?[^\s<>]\.(?:jpe?g|png|webp|gif|heic|mp4|mov|3gp|opus|ogg|mp3|m4a|aac|pdf|vcf|docx?|xlsx?|pptx?|"
    r"txt|zip|csv|apk|tgs|was)"
)
# iOS: <attached: 0001-PHOTO.jpg>; Android: IMG-0001.jpg (file attached); each in the phone's language.
_ATTACHED_IOS = re.compile(rf"<[^<>:]{{2,30}}:\s?{_FILE}>", re.I)
# A file by its own name needs the phrase; one that the app named is known without it, in any language.
_ATTACHED_ANDROID = re.compile(
    rf"^(?:{_FILE} \((?:file attached|arquivo anexado|ficheiro anexado|archivo adjunto|fichier joint|datei angehängt|"
    r"file allegato|bestand bijgevoegd|файл добавлен|файл прикреплен|plik dołączony|dosya ekli|file terlampir|"
    r"bifogad fil|vedlagt fil|vedhæftet fil|liitetty tiedosto|"
    r"添付ファイル|ファイル添付|文件附件|附件|檔案附件|파일 첨부됨|"
    r"ملف مرفق|الملف مرفق|קובץ מצורף)\)"
    r"|(?:IMG|VID|PTT|AUD|STK|DOC)-\d{8}-WA\d{4}\.\w{2,5}(?: \([^()\n]{3,40}\))?)$",
    re.I | re.M,
)
# <Media omitted>, <Mídia oculta>, <メディアなし>. Only with such a word: people write in angle brackets, too.
_HIDDEN = re.compile(
    r"^<(?=[^<>\n]*(?:m[eéí]di|multimedia|arquivo|archivo|файл|медиа|メディア|媒[体體]|미디어|وسائط|מדיה|plik|dosya|omitted))"
    r"[^<>\n]{3,60}>(?=\n|$)",
    re.I,
)
_OMITTED_WHOLE = frozenset(_OMITTED)
_ENDS = tuple(f" {phrase}" for phrase in _OMITTED)
_MARKS = re.compile("[\u200e\u202a-\u202e\u2066-\u2069]")
_EDIT_MARK = re.compile(r"\s*<([^<>\n]{5,60})>$")
_NOT_LETTERS = re.compile(r"[\s.…!]+$")

MEDIA = "picture, file or the like without a caption"
SYSTEM = "system line"
DELETED = "deleted message"


def said(text: str, *, marked: bool) -> tuple[str, str]:
    """What a person says in ``text``, else "" and the reason.

    ``marked``: the phone put its invisible mark before it, as iPhones do where the words are WhatsApp's own.
    """
    ends_in_mark = "\u200e<" in text
    text = _MARKS.sub("", text).strip()
    edit = _EDIT_MARK.search(text)
    if edit and (ends_in_mark or _is(edit[1], _EDITED)) and not _ATTACHED_IOS.search(edit[0]):
        text = text[: edit.start()].strip()
    if _is(text, _DELETED):
        return "", DELETED
    if _POLL.match(text):
        return "", "poll"
    if _PLACE.fullmatch(text):
        return "", "place on a map"
    if len(text) > 40 and (marked or "WhatsApp" in text) and _ENCRYPTED.search(text):
        return "", SYSTEM
    caption, media = _without_media(text)
    if media:
        return ("", MEDIA) if not caption or (marked and _is_file(caption)) else (caption, "")
    if marked:
        return "", SYSTEM
    if text == "null" or text.casefold().startswith(_WAITING):
        return "", "message that never arrived"
    return text, "" if text else MEDIA


def _without_media(text: str) -> tuple[str, bool]:
    """``text`` without the placeholder of what was sent with it, and whether there was one."""
    if _is(text, _OMITTED_WHOLE):
        return "", True
    for pattern in (_ATTACHED_IOS, _ATTACHED_ANDROID, _HIDDEN) if "<" in text or "(" in text else ():
        rest, found = pattern.subn("", text, count=1)
        if found:
            return rest.strip(), True
    first, _, rest = text.partition("\n")
    if rest and _is(first, _OMITTED_WHOLE):
        return rest.strip(), True
    # "contract.pdf • 3 pages document omitted"; without a file's name it is a person who writes so.
    if "." in text and text.casefold().endswith(_ENDS):
        named = next(text[: -len(end)] for end in _ENDS if text.casefold().endswith(end))
        return ("", True) if _is_file(named.strip()) else (text, False)
    return text, False


def _is_file(text: str) -> bool:
    return "•" in text or re.fullmatch(_FILE, text, re.I) is not None


def _is(text: str, phrases: frozenset[str]) -> bool:
    return len(text) < 80 and _NOT_LETTERS.sub("", text).casefold() in phrases
