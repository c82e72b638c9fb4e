"""Threads that plan queries: while one plans, another one's tasks have the cores."""

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession


def planners(spark: SparkSession, threads: int) -> ThreadPoolExecutor:
    """Return `threads` threads that plan as `share_classes` says."""
    return ThreadPoolExecutor(threads, initializer=share_classes, initargs=(spark,))


def share_classes(spark: SparkSession) -> None:
    """Have this thread's plans and their tasks share what is compiled, where the tasks run in this JVM.

    Spark compiles each stage when it plans it, and keeps the classes by class loader (SPARK-44795). The tasks have a
    loader of their own, so every stage would be compiled again in its first task. After the first job only: before it,
    the tasks' loader does not know the jars of --jars.
    """
    tasks = spark._jvm.org.apache.spark.SparkEnv.get().serializer().defaultClassLoader()
    if tasks.isDefined():
        spark._jvm.java.lang.Thread.currentThread().setContextClassLoader(tasks.get())
