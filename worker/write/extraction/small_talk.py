"""What people say to anybody, about nothing: greetings, thanks, acknowledgements, laughter, in folded spelling.

A message made of these alone holds no fact, so no model is asked. A word that could carry one is not in here.
"""

from __future__ import annotations

import re

from worker.write.names import fold


def _phrases(text: str) -> frozenset[str]:
    return frozenset(fold(phrase) for phrase in text.split("|"))


SMALL_TALK = _phrases(
    "good morning|good afternoon|good evening|good night|good day|hi there|hello there|hi|hello|hey|howdy|"
    "greetings|yo|how are you doing today|how are you doing|how are you today|how are you|how is it going|"
    "how s it going|what s up|whats up|sup|all good|thank you very much|thank you so much|thank you|thanks a lot|"
    "thanks|thx|ty|you re welcome|welcome|no problem|no worries|sounds good|great|nice|cool|perfect|awesome|okay|"
    "okey|ok|k|got it|understood|roger|noted|sure|alright|all right|bye bye|bye|goodbye|see you later|"
    "see you soon|see you|take care|cheers|please|lol|lmao|wow|oh|ah|hm|hmm|uh|um|bom dia|boa tarde|boa noite|oi|"
    "ola|opa|e ai|eai|eae|alo|tudo bem com voce|tudo bem|tudo bom|tudo certo|tudo joia|como vai voce|como vai|"
    "como voce esta|como esta|como vc ta|beleza|blz|muito obrigado|muito obrigada|obrigado|obrigada|obg|brigado|"
    "brigada|valeu|vlw|de nada|por nada|por favor|tchau|ate logo|ate mais|ate breve|falou|flw|abraco|abracos|"
    "beijo|beijos|bjs|entendi|entendido|legal|otimo|perfeito|show|combinado|certo|ta bom|ta|ta bem|uau|"
    "buenos dias|buenas tardes|buenas noches|hola|buenas|que tal|como estas|muchas gracias|gracias|de acuerdo|"
    "vale|entendido|adios|hasta luego|hasta pronto|chao|bonjour|bonsoir|salut|coucou|ca va|comment ca va|"
    "comment vas tu|merci beaucoup|merci|d accord|de rien|au revoir|a bientot|s il te plait|s il vous plait|"
    "guten morgen|guten tag|guten abend|gute nacht|hallo|servus|moin|wie geht s|wie geht es dir|vielen dank|"
    "danke schon|danke|bitte|alles klar|in ordnung|tschuss|auf wiedersehen|buongiorno|buonasera|buonanotte|ciao|"
    "salve|come stai|come va|grazie mille|grazie|prego|va bene|d accordo|arrivederci|привет|здравствуйте|"
    "здравствуй|доброе утро|добрый день|добрый вечер|спокойнои ночи|спокойной ночи|как дела|спасибо|"
    "большое спасибо|пожалуиста|пожалуйста|хорошо|ладно|пока|до свидания|مرحبا|السلام عليكم|وعليكم السلام|"
    "صباح الخير|مساء الخير|شكرا|شكرا جزيلا|كيف حالك|你好|您好|大家好|早上好|早安|下午好|晚上好|晚安|谢谢你|"
    "谢谢您|谢谢|多谢|不客气|好的|好吧|好|嗯|嗯嗯|再见|拜拜|收到|明白|你好吗|こんにちは|こんばんは|"
    "おはようございます|おはよう|おやすみなさい|おやすみ|ありがとうございます|ありがとう|どうも|了解です|了解|"
    "わかりました|お疲れ様です|お元気ですか|さようなら|안녕하세요|안녕|감사합니다|고마워요|고마워|고맙습니다|네|"
    "알겠습니다|잘 자|안녕히 가세요|नमस्ते|धन्यवाद"
)
# An answer is one only to somebody's question: with recent messages about, it may well say something.
ANSWERS = _phrases(
    "yes|yeah|yep|yup|no|nope|nah|sim|nao|claro|aham|uhum|exato|isso|si|oui|non|ja|nein|da|да|нет|是|是的|不是|"
    "はい|いいえ|아니요"
)
LAUGHTER = re.compile(r"^(?:(?:ha|he|hi|ja|je|ah|eh){2,}h?|k{2,}|(?:rs)+|w{3,}|哈+|呵+|笑+|ㅋ+|ㅎ+|ха(?:ха)+|ه{3,})$")
