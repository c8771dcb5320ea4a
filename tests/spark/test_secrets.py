"""A password is nowhere to be seen: not in plans, logs, event logs, checkpoints, progress or errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warrenmq
from tests.spark.support import QUICK_JVM, channel
from tests.support.brokers import RunningBroker
from warrenmq.spark.options import OptionError, parse
from warrenmq.spark.secret import password

SECRET = "hunter2-very-secret"
# The password is given in every way there is: in the open, in the URL, by a variable, a file or a command.
PROGRAM = """
import sys
from warrenmq.spark import session
folder, host, port, queue, token = sys.argv[1:]
spark = session("local[1]", settings={"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder + "/events",
                                      "spark.eventLog.compress": "false",
                                      "spark.python.authenticate.socketTimeout": "300s",  # a busy machine
                                      "spark.python.daemon.module": "tests.spark.daemon",
                                      "spark.driver.extraJavaOptions": "QUICK-JVM"}, quiet=False)
spark.sparkContext.setLogLevel("INFO")
where = dict(host=host, port=port, username="spark-secret")
opened = dict(where, password="SECRET-HERE")
in_url = dict(url=f"amqp://spark-secret:SECRET-HERE@{host}:{port}/")
named = dict(where, passwordEnv="AMQP_SECRET")
df = spark.createDataFrame([("x",)], "body string")
for given in (opened, in_url):
    df.write.format("amqp").options(**given, exchange="", routingKey=queue).mode("append").save()
for number, given in enumerate((opened, in_url)):
    read = spark.readStream.format("amqp").options(**given, stream=queue).load()
    read.explain(True)
    query = (read.writeStream.format("parquet").option("path", f"{folder}/lake{number}")
             .option("checkpointLocation", f"{folder}/checkpoint{number}").trigger(availableNow=True).start())
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress, query.status)
for given in (named, dict(where, tokenFile=token), dict(where, tokenCommand="echo SECRET-HERE")):
    static = spark.read.format("amqp").options(**given, stream=queue).load()
    static.explain("formatted")
    static.explain("extended")
    static.write.mode("overwrite").parquet(folder + "/batch")
try:
    spark.read.format("amqp").options(**in_url, stream=queue + "-none").load().count()
except Exception as error:
    print(error)
spark.stop()
""".replace("SECRET-HERE", SECRET).replace("QUICK-JVM", QUICK_JVM)


@pytest.mark.spark
@pytest.mark.slow
def test_the_password_shows_nowhere(rabbitmq: RunningBroker, name: str, tmp_path: Path) -> None:
    rabbitmq.add_user("spark-secret", SECRET)
    with channel(rabbitmq) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    (tmp_path / "events").mkdir()
    program = tmp_path / "program.py"
    # The program itself names the password (as a user's would); it must not come back from anywhere else.
    program.write_text(PROGRAM)
    token = tmp_path / "token"
    token.write_text(SECRET)
    package = Path(warrenmq.__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "AMQP_SECRET": SECRET, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), rabbitmq.host, str(rabbitmq.port), name, str(token)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    places = {"standard output": done.stdout, "standard error": done.stderr}
    for file in tmp_path.rglob("*"):
        if file.is_file() and file not in (program, token):
            places[str(file.relative_to(tmp_path))] = file.read_bytes().decode("latin-1")
    assert any(path.startswith("events") for path in places) and any("offsets" in path for path in places)
    assert [place for place, text in places.items() if SECRET in text] == []


def test_the_password_comes_from_a_variable_or_a_file_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMQP_SECRET", "from-env")
    assert password(parse({"stream": "s", "username": "u", "passwordEnv": "AMQP_SECRET"})) == "from-env"
    (tmp_path / "secret").write_text("from-file\n")
    assert password(parse({"stream": "s", "passwordFile": str(tmp_path / "secret")})) == "from-file"
    with pytest.raises(OptionError, match="NOT_THERE, which is not set here"):
        password(parse({"stream": "s", "passwordEnv": "NOT_THERE"}))
    with pytest.raises(OptionError, match="cannot be read: No such file"):
        password(parse({"stream": "s", "passwordFile": str(tmp_path / "none")}))
    with pytest.raises(OptionError, match="no password for user 'u'"):
        password(parse({"stream": "s", "username": "u"}))
    with pytest.raises(OptionError, match="give only one of"):
        parse({"stream": "s", "password": "p", "passwordEnv": "AMQP_SECRET"})


def test_options_never_print_the_password() -> None:
    options = parse({"stream": "s", "url": f"amqp://u:{SECRET}@h:1/v"})
    assert password(options) == SECRET and (options.address, options.virtual_host) == ("h:1", "v")
    assert SECRET not in repr(options) and SECRET not in str(options)
