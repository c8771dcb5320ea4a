"""Spark's classes as Java maps them into memory: `spark_classes.py`, for the tests; made once and kept in .make.

A JVM that runs Spark loads and checks twenty thousand classes, for half of the CPU seconds of a small job, and the
tests start very many such JVMs. Java can write down what one of them has loaded and map that into all others (a
dynamic archive of class data sharing). One that does not fit, because Java or Spark is another, is passed over by the
JVM itself, so this is about time and nothing else: whatever fails here ends in one line and no error.

`tests/spark/support.py` names the file to the JVMs that tests start.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMPS = ROOT / ".make"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: what tests do: batches and streams, Python workers with and without Arrow, files, joins, windows
PROGRAM = """
import sys
from pyspark import SparkContext
from pyspark.sql import Window, functions as F
from warrenmq.spark.sessions import session

folder, options = sys.argv[1:]
spark = session("local[2]", "classes", {"spark.driver.extraJavaOptions": options})
schema = "n int, text string, map map<string,string>"
rows = spark.createDataFrame([(n, str(n), {"a": str(n)}) for n in range(50)], schema)
rows.write.parquet(f"{folder}/rows")
read = spark.read.parquet(f"{folder}/rows")
place = F.row_number().over(Window.partitionBy(F.col("n") % 3).orderBy("text"))
grouped = rows.groupBy("text").agg(F.count("*"), F.collect_list("n"))
read.withColumn("place", place).join(grouped, "text").orderBy("n").collect()
read.mapInArrow(lambda batches: batches, rows.schema).groupBy("n").count().toPandas()
read.withColumn("long", F.udf(lambda text: text + text)("text")).select(F.to_json("map"), "long").collect()
for trigger in ({"availableNow": True}, {"once": True}):
    stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/rows").writeStream
    stream = stream.option("checkpointLocation", f"{folder}/{list(trigger)[0]}").trigger(**trigger)
    stream.foreachBatch(lambda batch, number: batch.count()).start().awaitTermination()
spark.createDataFrame(rows.rdd.map(tuple), rows.schema).createOrReplaceTempView("rows")
spark.sql("select text, sum(n) from rows where text like '1%' group by text having sum(n) > 1").collect()
jvm = SparkContext._gateway.proc
spark.stop()
SparkContext._gateway.shutdown()
jvm.stdin.close()
jvm.wait()
"""


def main() -> int:
    try:
        java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
        import pyspark
    except (OSError, subprocess.CalledProcessError, ImportError):
        return 0  # there will be no tests with Spark
    known = hashlib.sha256(b"\0".join([java, pyspark.__version__.encode(), str(pyspark.__file__).encode()]))
    wanted = STAMPS / f"spark-{known.hexdigest()[:12]}.jsa"
    if wanted.exists():
        return 0
    for old in STAMPS.glob("spark-*.jsa"):
        old.unlink()
    STAMPS.mkdir(exist_ok=True)
    print("warren: writing down Spark's classes for the tests (once, some twenty seconds)", flush=True)
    with tempfile.TemporaryDirectory(dir=STAMPS) as folder:
        new = Path(folder, "new.jsa")
        options = f"{QUICK} -Xlog:disable -XX:ArchiveClassesAtExit={new}"
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        program = [sys.executable, "-c", PROGRAM, folder, options]
        ended = subprocess.run(program, env=environment, cwd=folder, capture_output=True, text=True)
        if ended.returncode or not new.exists():
            lines = ended.stderr.strip().splitlines()
            print(f"warren: that failed, the tests take longer: {lines[-1] if lines else 'no file came of it'}")
            return 0
        new.replace(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
