"""WS-Management (DMTF DSP0226), the part that Intel AMT's power service takes: Get and one method, digest, stdlib only.

There is no kept library for it that is less than a network automation framework, and the part is small.
"""

import http.client
import secrets
import ssl
import uuid
from xml.etree import ElementTree as xml
from xml.sax.saxutils import escape

from labd.helpers import _digest
from labd.helpers._program import FAILED, TIMED_OUT, UNREACHABLE, Failure

CIM = "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/"
_SOAP = "http://www.w3.org/2003/05/soap-envelope"
_ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
_WSMAN = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
_GET = "http://schemas.xmlsoap.org/ws/2004/09/transfer/Get"

#: What a power request is for: the machine that AMT is in.
MANAGED_SYSTEM = (
    f"<h:ManagedElement><a:Address>{_ADDRESSING}/role/anonymous</a:Address><a:ReferenceParameters>"
    f"<w:ResourceURI>{CIM}CIM_ComputerSystem</w:ResourceURI><w:SelectorSet>"
    '<w:Selector Name="CreationClassName">CIM_ComputerSystem</w:Selector>'
    '<w:Selector Name="Name">ManagedSystem</w:Selector>'
    "</w:SelectorSet></a:ReferenceParameters></h:ManagedElement>"
)


class Service:
    """The WS-Management service at HOST:PORT. `tls` is None for plain HTTP. Each request is a connection of its own."""

    def __init__(self, host: str, port: int, user: str, password: str, tls: ssl.SSLContext | None,
                 timeout_s: float) -> None:  # fmt: skip
        self.host, self.port, self.tls, self.timeout_s = host, port, tls, timeout_s
        self.user, self.password = user, password
        self.name = f"{host}:{port}"
        self._challenge: dict[str, str] | None = None
        self._count = 0

    def get(self, resource: str) -> dict[str, str]:
        """The one instance of a CIM class: its fields by name."""
        return self._fields(self._request(f"{CIM}{resource}", _GET, ""))

    def invoke(self, resource: str, method: str, arguments: str) -> dict[str, str]:
        """Call a method (its arguments as XML, their prefix `h`) and return what it puts out."""
        uri = f"{CIM}{resource}"
        body = f'<h:{method}_INPUT xmlns:h="{uri}">{arguments}</h:{method}_INPUT>'
        return self._fields(self._request(uri, f"{uri}/{method}", body))

    def _request(self, uri: str, action: str, body: str) -> bytes:
        envelope = (
            f'<?xml version="1.0" encoding="utf-8"?><Envelope xmlns="{_SOAP}" xmlns:a="{_ADDRESSING}" '
            f'xmlns:w="{_WSMAN}"><Header><a:Action>{escape(action)}</a:Action><a:To>/wsman</a:To>'
            f"<w:ResourceURI>{escape(uri)}</w:ResourceURI><a:MessageID>uuid:{uuid.uuid4()}</a:MessageID><a:ReplyTo>"
            f"<a:Address>{_ADDRESSING}/role/anonymous</a:Address></a:ReplyTo>"
            f"<w:OperationTimeout>PT{max(1, int(self.timeout_s))}S</w:OperationTimeout></Header><Body>{body}</Body>"
            "</Envelope>"
        ).encode()
        status, headers, answer = self._post(envelope)
        if status == 401:  # also when the nonce of an earlier request has grown old
            self._challenge, self._count = _digest.challenge(headers.get("www-authenticate", "")), 0
            if self._challenge is None:
                raise Failure(
                    f"{self.name} wants a kind of authentication that this program does not know", UNREACHABLE
                )
            status, headers, answer = self._post(envelope)
        if status == 401:
            raise Failure(f"{self.name} refuses the user {self.user!r} or the password", UNREACHABLE)
        if status != 200 and b"Envelope" not in answer:
            raise Failure(f"{self.name} answers HTTP {status}, but not as AMT", UNREACHABLE)
        return answer

    def _post(self, envelope: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {"Content-Type": "application/soap+xml;charset=UTF-8"}
        if self._challenge is not None:
            self._count += 1
            told = _digest.authorization(self._challenge, user=self.user, password=self.password, method="POST",
                                         uri="/wsman", cnonce=secrets.token_hex(16), count=self._count)  # fmt: skip
            if told is None:
                raise Failure(
                    f"{self.name} wants a kind of authentication that this program does not know", UNREACHABLE
                )
            headers["Authorization"] = told
        make = http.client.HTTPConnection
        connection = make(self.host, self.port, timeout=self.timeout_s) if self.tls is None else (
            http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout_s, context=self.tls)
        )  # fmt: skip
        try:
            connection.request("POST", "/wsman", body=envelope, headers=headers)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read(1 << 20)
        except TimeoutError:
            raise Failure(f"{self.name} did not answer within {self.timeout_s:g} s", TIMED_OUT) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failure(f"{self.name} is unreachable: {reason}", UNREACHABLE) from None
        finally:
            connection.close()

    def _fields(self, answer: bytes) -> dict[str, str]:
        """The fields of the element in an envelope's body. Raises Failure for a fault, and for what is no envelope."""
        try:
            if b"<!DOCTYPE" in answer:  # has no business here, and entities could grow without bound
                raise xml.ParseError
            body = xml.fromstring(answer).find(f"{{{_SOAP}}}Body")
        except xml.ParseError:
            body = None
        if body is None or not len(body):
            raise Failure(f"{self.name} answers, but not as AMT", UNREACHABLE)
        if body[0].tag == f"{{{_SOAP}}}Fault":
            texts = [" ".join("".join(found.itertext()).split()) for found in body[0].iter(f"{{{_SOAP}}}Text")]
            raise Failure(f"{self.name} refuses: {'; '.join(texts) or 'a fault without a reason'}", FAILED)
        return {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in body[0]}


def context(trust: str | None) -> ssl.SSLContext:
    """TLS that trusts the system's authorities, those in the file `trust`, or anything (`any`). Raises Failure."""
    try:
        made = ssl.create_default_context(cafile=trust if trust not in (None, "any") else None)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"--trust {trust}: {error}", FAILED) from None
    if trust == "any":
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made
