"""Which benchmarks to run."""

from __future__ import annotations

from typing import Any

from dsc.bench.coding import bench_coding, format_coding
from dsc.bench.scale import bench_scale, format_scale
from dsc.bench.system import bench_system, format_system


def run_bench(
    quick: bool = False, system: bool = False, scale: bool = False
) -> tuple[dict[str, Any], str]:
    """Numbers for machines and text for people; without `system` and `scale`, coding alone."""
    if scale:
        summary = bench_scale()
        return summary, format_scale(summary)
    if system:
        summary = bench_system(quick)
        return summary, format_system(summary)
    summary = bench_coding(quick)
    return summary, format_coding(summary)
