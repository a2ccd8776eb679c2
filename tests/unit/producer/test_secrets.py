"""What is masked, in prose and next to any script, and what is left alone."""

from __future__ import annotations

import pytest

from producer.secrets import mask

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("minha chave é sk-test-ZZ99ZZ99ZZ99ZZ99, guarda aí", "sk-test-ZZ99ZZ99ZZ99ZZ99", "api key"),
        ("我的key是sk-abc123def456ghi789jkl谢谢", "sk-abc123def456ghi789jkl", "api key"),
        ("use ghp_abcdefghijklmnop0123456789ABCDEFGHIJ", "ghp_abcdefghijklmnop", "api key"),
        ("AKIAIOSFODNN7EXAMPLE is mine", "AKIAIOSFODNN7EXAMPLE", "api key"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSyA1234567890", "api key"),
        ("slack: xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012", "api key"),
        ("token: abc123def456", "abc123def456", "api key"),
        ("Authorization: Bearer abc123def456ghi789jkl012", "abc123def456ghi789jkl012", "token"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSM", "eyJzdWIiOiIxMjM0", "token"),
        (f"veja {PEM} moro em Recife", "MIIEpAIBAAKCAQEA7", "private key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1", "b3BlbnNzaC1", "private key"),
        ("postgres://bob:s3cret@db.example/x", "s3cret", "password"),
        ("my password for Netflix is hunter2!", "hunter2", "password"),
        ("Password: hunter2", "hunter2", "password"),
        ("a senha do wifi é banana42", "banana42", "password"),
        ("mi contraseña es gato-azul", "gato-azul", "password"),
        ("mein Passwort ist Sommer99", "Sommer99", "password"),
        ("mon mot de passe est lapin7", "lapin7", "password"),
        ("我的密码是abc123456，别忘了", "abc123456", "password"),
        ("パスワードはhimitsu9です", "himitsu9", "password"),
        ("мой пароль: zima2020", "zima2020", "password"),
        ("My PIN is 4821", "4821", "pin"),
        ("cvv 123", "123", "pin"),
        ("meu cartão 4111 1111 1111 1111 vence em maio", "4111 1111 1111 1111", "card number"),
        ("カード番号は4111111111111111です", "4111111111111111", "card number"),
        ("amex 3782-822463-10005", "3782-822463-10005", "card number"),
        ("４１１１１１１１１１１１１１１１", "４１１１", "card number"),
    ],
)
def test_masked(text: str, secret: str, kind: str) -> None:
    found = mask(text)
    assert secret not in found.text
    assert found.found.get(kind) == 1
    assert f"[redacted: {kind}]" in found.text
    assert mask(found.text).text == found.text


@pytest.mark.parametrize(
    "text",
    [
        "moro na rua 8421, apê 1904",
        "tel 5511987654321, CEP 50000-000",
        "I forgot my password and Ana is angry",
        "my password is very old",
        "minha senha é muito fraca",
        "4111 1111 1111 1112 is no card",
        "order 1234567890123456",
        "sk-learn and ask-me-anything-about-bridges",
        "https://example.com/AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
        "event 6a5d4c1e-6f2b-4b1c-9a55-2f8f6f0f9d3e",
        "o token acabou e a chave de casa sumiu",
        "我每天早上喝豆浆。",
    ],
)
def test_left_alone(text: str) -> None:
    assert mask(text).text == text


def test_what_is_around_a_secret_stays() -> None:
    assert mask(f"veja {PEM} moro em Recife").text == "veja [redacted: private key] moro em Recife"
    assert mask("minha chave é sk-test-ZZ99ZZ99ZZ99ZZ99, guarda").text == "minha chave é [redacted: api key], guarda"
