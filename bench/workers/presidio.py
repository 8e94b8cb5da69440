"""Find personal data with presidio-rs: texts in as one line of JSON, spans and seconds out."""

import json
import sys
import time

import presidio_rs

KINDS = ["EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "IP_ADDRESS"]


def main() -> None:
    analyzer = presidio_rs.Analyzer()
    for line in sys.stdin:
        texts = json.loads(line)
        started = time.process_time()
        found = [analyzer.analyze(text, entities=KINDS) for text in texts]
        seconds = time.process_time() - started
        spans = [
            [(each["entity_type"], each["start"], each["end"]) for each in one] for one in found
        ]
        print(json.dumps({"seconds": seconds, "spans": spans}), flush=True)


main()
