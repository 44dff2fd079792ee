"""Spark: data, counting, studies and synthesis on a cluster; the extra `keyhole[spark]`."""
