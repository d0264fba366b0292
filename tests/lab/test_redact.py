"""Secrets are taken out of what is shown; everything else stays as it was."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.lab.redact import redact, redacted


@pytest.mark.parametrize(
    "text",
    [
        "curl http://admin:S3CRET@192.0.2.4/on",
        "rfc2217://user:S3CRET@bench:4000",
        "pdu --password S3CRET on 3",
        "pdu --password=S3CRET on 3",
        "pdu --password 'S3CRET' on 3",
        'pdu --api-key "S3CRET" on 3',
        "pdu --auth-token S3CRET",
        "AMT_PASSWORD=S3CRET amt on",
        "sh -c 'TOKEN=S3CRET pdu on'",
        "curl http://192.0.2.4/on?token=S3CRET&port=3",
        "curl -u admin:S3CRET http://192.0.2.4",
        "curl --user admin:S3CRET http://192.0.2.4",
        "curl -H 'Authorization: Bearer S3CRET' http://x",
        "curl -H 'X-Auth-Token: S3CRET' http://x",
        "ipmitool -I lanplus -H bmc -U admin -P S3CRET power cycle",
        "snmpset -v 2c -c S3CRET 192.0.2.5 oid i 1",
        "sshpass -p S3CRET ssh pdu",
        "PDU_PASS=S3CRET pdu on",
        "AWS_SECRET_ACCESS_KEY=S3CRET pdu on",
        "GITHUB_PAT=S3CRET pdu on",
        "pdu --key S3CRET on",
        "curl --oauth2-bearer S3CRET http://x",
        "curl -uadmin:S3CRET http://x",
        "curl -u 'a b:S3CRET more' http://x",
        'curl -u "a b:S3CRET S3CRET" http://x',
        "mysql -pS3CRET -e x",
        "plug ghp_S3CRETS3CRETS3CRETS3CRET on",
        "plug glpat-S3CRETS3CRETS3CRET on",
        "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTM0NSRVQifQ.abcS3CRETdef-_x on",
        "sent:eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..S3CRET.S3CRETS3CRET.S3CRET",
        "plug on < '-----BEGIN EC PRIVATE KEY-----\nS3CRET\n-----END EC PRIVATE KEY-----'",
        "curl -b 'session=S3CRET' http://x",
        "curl -b S3CRET http://x",
        "curl -H 'Cookie: a=S3CRET; b=S3CRET' http://x",
        "curl -H 'Authorization: Digest a=S3CRET, b=S3CRET' http://x",
        """curl -d '{"password": "S3CRET"}' http://x""",
        """curl -d "{\\"user\\": \\"u\\", \\"api_key\\": \\"S3CRET\\"}" http://x""",
        "login: admin, password: S3CRET",
        "curl http://192.0.2.4/on?pw=S3CRET",
        "curl http://S3CRET@192.0.2.4/",
        "curl http://u:p@S3CRET@192.0.2.4/",
        "pdu u:S3CRET@192.0.2.4 on",
    ],
)
def test_a_secret_is_not_shown(text):
    shown = redact(text)
    assert "S3CRET" not in shown and "***" in shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "shellyplug -d 192.0.2.41 cycle",
        "adb -s ABC123 reboot",
        "http://192.0.2.4:8080/x@y",
        "/dev/serial/by-id/usb-FTDI_TTL232R-if00-port0",
        "pdu --port 3 --passive on",
        "hidrig -d /dev/ttyACM1 type token",
        "rfc2217://bench:4000",
        "usbhub -u 1 cycle",
        "ssh://root@bench",
        "root@bench",
        "labd-hid key enter",
        "pdu --passive --monkey 3 compass=4",
        "the password is in the drawer",
        "eyJhbGciOiJIUzI1NiJ9 and eyJ.a.b",
        "curl http://192.0.2.4:8080/relay?on=1",
        "/dev/serial/by-path/pci-0000:00:14.0-usb-0:2:1.0-port0",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_plain_data_are_redacted_all_the_way_down():
    data = {"a": [{"b": "x --token S3CRET", "n": 1, "t": True}], "c": None}
    assert redacted(data) == {"a": [{"b": "x --token ***", "n": 1, "t": True}], "c": None}


@given(st.text(max_size=200))
def test_no_text_breaks_it(text):
    assert isinstance(redact(text), str)


@pytest.mark.parametrize(
    "text",
    ["a." * 20000 + " key=1", "-." * 20000 + "token", "x-" * 20000 + "x-: authorization:", "curl " * 8000 + "-b",
     "://" + "a." * 20000, "://" + "a:" * 20000 + "@", "token " * 7000, "'\"" * 20000 + "key", "mysql -" * 6000,
     "eyJabcdefgh." * 20000, "eyJ" + "a" * 200000, ("eyJ" + "a" * 100) * 2000 + "."],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_no_text_takes_long(text):
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 10
