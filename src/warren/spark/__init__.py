"""Spark data sources, pipeline jobs and schemas."""
