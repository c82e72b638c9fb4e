"""What lies at a path of any file system that Hadoop knows; what is wrong with it, in one line."""

from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from report.spark.errors import ReportError

LINES: Final = (".json", ".jsonl", ".ndjson", ".gz", ".bz2")
"""Ends of the names of JSON lines; Parquet that is packed still ends in `.parquet`."""
BEING_WRITTEN: Final = "_temporary"
REFUSED: Final = (Py4JJavaError, PySparkException)
"""PySpark gives some exceptions of Java a class of its own."""
NO_FILE_SYSTEM: Final = ("ClassNotFoundException", "UnsupportedFileSystemException", "NoClassDefFoundError")
JARS: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop} and the AWS SDK bundle that it names",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop} and what it names",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop} and what it names",
    "gs": "Google's gcs-connector for Hadoop 3",
}


def local(place: Path) -> str:
    """Return the path by which Hadoop finds a file of this machine, whatever its own file system is."""
    return f"file://{place.resolve()}"


def are_lines(spark: SparkSession, place: str) -> bool:
    """Return whether JSON lines lie at `place`, a file, a folder or a pattern; else it is Parquet.

    The name of the first file tells. Raises ReportError where there is none, or none can be read.
    """
    try:
        return _first_file(spark, place).lower().endswith(LINES)
    except REFUSED as refused:
        raise ReportError(_in_words(spark, place, _innermost(refused))) from refused


def beside(spark: SparkSession, place: str, name: str) -> str | None:
    """Return the path of `name` in the folder of `place`; None where it is not there."""
    path = _path(spark, place)
    if path.getParent() is None:
        return None
    wanted = _path(spark, f"{path.getParent().toString().rstrip('/')}/{name}")
    try:
        return str(wanted.toString()) if _system(spark, wanted).exists(wanted) else None
    except REFUSED as refused:
        raise ReportError(_in_words(spark, str(wanted.toString()), _innermost(refused))) from refused


def _first_file(spark: SparkSession, place: str) -> str:
    path = _path(spark, place)
    system = _system(spark, path)
    found = system.globStatus(path)
    if not found:
        raise ReportError("no such file or folder")
    first = found[0]
    while first.isDirectory():
        inside = {one.getPath().getName(): one for one in system.listStatus(first.getPath())}
        if BEING_WRITTEN in inside:
            raise ReportError(f"it is not whole: {BEING_WRITTEN} is there, so somebody writes it, or did not finish")
        shown = sorted(name for name in inside if not name.startswith(("_", ".")))
        if not shown:
            raise ReportError("the folder holds no file")
        first = inside[shown[0]]
    return str(first.getPath().getName())


def _path(spark: SparkSession, place: str) -> Any:
    try:
        return spark.sparkContext._jvm.org.apache.hadoop.fs.Path(place)
    except REFUSED as refused:
        raise ReportError(f"not a path ({_innermost(refused)})") from refused


def _system(spark: SparkSession, path: Any) -> Any:
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _in_words(spark: SparkSession, place: str, said: str) -> str:
    scheme = place.partition("://")[0]
    if not any(name in said for name in NO_FILE_SYSTEM):
        return f"cannot be read ({said})"
    if scheme in {"s3", "s3n"}:
        return f"Hadoop calls this scheme s3a: name it s3a{place[len(scheme) :]}"
    hadoop = spark.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    jars = JARS.get(scheme, f"the jar of its file system for Hadoop {hadoop}").format(hadoop=hadoop)
    return f"Spark has no file system for {scheme}:// here; add it with --jars ({jars})"


def _innermost(refused: Exception) -> str:
    """Return the first line of what the innermost cause says."""
    if not isinstance(refused, Py4JJavaError):
        return str(refused).partition("\n")[0][:300]
    thrown = refused.java_exception
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.toString()).partition("\n")[0][:300]
