"""What RabbitMQ 3.10 answered, Warren answers: the recorded conversation, and the table of endpoints by users."""

from __future__ import annotations

import json

import pytest

from tests.http import dialogue, tag_cases
from tests.http.conftest import Api

RECORDED = json.loads(dialogue.ANSWERS.read_text())
ALLOWED = json.loads(tag_cases.ANSWERS.read_text())


@pytest.mark.parametrize("part", dialogue.PARTS)
def test_every_answer_of_a_long_conversation_is_rabbitmqs(api: Api, part: str) -> None:
    steps = dialogue.PARTS[part]
    if part == "live":
        with dialogue.visitor(api.broker.port):
            answers = dialogue.talk(api.broker.http_url, steps)
    else:
        answers = dialogue.talk(api.broker.http_url, steps)
    wrong = []
    for number, (step, ours) in enumerate(zip(steps, answers, strict=True)):
        theirs = RECORDED[dialogue.key(part, number, step)]
        if not step.differs and not dialogue.agrees(ours, theirs):
            wrong.append(f"{step.name}\n  RabbitMQ: {json.dumps(theirs)}\n  Warren:   {json.dumps(ours)}")
    assert not wrong, "\n".join(wrong)


def test_nobody_sees_or_does_what_their_tags_do_not_allow(api: Api) -> None:
    """All endpoints by all kinds of users; where a real node crashes with 500, ours says 404 or 401."""
    wrong = []
    tag_cases.set_up(api.client, api.broker.http_url)
    for case in tag_cases.CASES:
        ours = tag_cases.ask(api.client, api.broker.http_url, case)
        for user, theirs in ALLOWED[case.name].items():
            same = ours[user] in (401, 404) if theirs == 500 else ours[user] == theirs
            if not same:
                wrong.append(f"{case.name} as {user}: RabbitMQ {theirs}, Warren {ours[user]}")
    tag_cases.clean_up(api.client, api.broker.http_url)
    assert not wrong, "\n".join(wrong)
