"""The `dsc` command: parse, call one library function, print."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

import dsc
from dsc.cli import options as console
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.learn import plan_learning
from dsc.dictionary.run import RunFolder, describe, load_dictionary
from dsc.patches import PatchConfig, extract_patches

out_option = click.option(
    "--out", "-o", required=True, help="Where to write; must not exist yet.", metavar="PATH"
)


@click.group(
    cls=console.Program,
    elsewhere={
        "experiment": "dsc.cli.experiment:experiment",
        "report": "dsc.cli.report:report",
        "texture": "dsc.cli.texture:texture",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(dsc.__version__, prog_name="dsc")
def main() -> None:
    """Learn dictionaries of image atoms that may appear in any orientation."""


@main.command()
@click.argument("pictures", nargs=-1, required=True)
@out_option
@console.options_of(PatchConfig)
@console.config_option
@console.json_option
def patches(pictures: tuple[str, ...], out: str, as_json: bool, **options: Any) -> None:
    """Cut patches out of PICTURES (files, folders, globs) into a patch set."""
    begin = time.perf_counter()
    source = extract_patches(list(pictures), out, PatchConfig(**options))
    summary = {
        "n_patches": source.n_patches,
        "diameter": source.diameter,
        "fingerprint": source.fingerprint,
        "out": out,
        "seconds": time.perf_counter() - begin,
    }
    if as_json:
        console.print_json(summary)
    else:
        console.say(f"{source.n_patches:,} patches of diameter {source.diameter} in {out}")
        console.say(f"next: dsc learn {out} --out RUN")


@main.command()
@click.argument("patches")
@click.option("--out", "-o", required=True, help="Run folder to make.", metavar="RUN")
@console.options_of(LearnConfig)
@click.option("--resume", is_flag=True, help="Continue RUN from its last complete iteration.")
@console.overwrite_option
@click.option("--plan", is_flag=True, help="Print the plan and the estimated time; run nothing.")
@console.engine_options
@console.config_option
@console.json_option
def learn(
    patches: str,
    out: str,
    resume: bool,
    overwrite: bool,
    plan: bool,
    where: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Learn a dictionary from the patch set PATCHES into the run folder RUN."""
    if plan:
        planned = plan_learning(patches, LearnConfig(**options), **where)
        console.print_json(planned) if as_json else console.say(console.describe_plan(planned))
        return
    begin = time.perf_counter()
    with console.resumable(out):
        model = dsc.learn(
            patches,
            run=out,
            resume=resume,
            overwrite=overwrite,
            progress=console.IterationProgress(),
            **where,
            **options,
        )
    summary = {
        "n_patches": model.patches["n_patches"],
        "mse": model.mse,
        "history": model.history.tolist(),
        "atoms_sha256": model.sha256,
        "n_tasks": RunFolder(Path(out)).n_tasks,
        "seconds": time.perf_counter() - begin,
        "out": out,
    }
    from dsc.report import write_report

    write_report(out)
    if as_json:
        console.print_json(summary)
    else:
        console.say(
            f"mse {model.mse:.6g} per pixel; dictionary in {out}, see {out}/report/index.html"
        )
        console.say(f"next: dsc encode {patches} {out} --out CODES.zarr")


@main.command()
@click.argument("patches")
@click.argument("model", metavar="RUN_OR_MODEL")
@out_option
@console.engine_options
@console.json_option
def encode(
    patches: str,
    model: str,
    out: str,
    where: dict[str, Any],
    as_json: bool,
) -> None:
    """Code the patch set PATCHES with a learned dictionary."""
    coded = load_dictionary(model).encode(patches, out, **where)
    summary = {
        "n_patches": coded.n_patches,
        "mse": coded.mse,
        "seconds": coded.seconds,
        "out": out,
    }
    if as_json:
        console.print_json(summary)
    else:
        console.say(f"{coded.n_patches:,} patches coded in {out}, mse {coded.mse:.6g} per pixel")


@main.command()
@click.argument("picture")
@click.argument("model", metavar="RUN_OR_MODEL")
@out_option
@click.option("--stride", default=1, show_default=True, help="Pixels between patches.")
@console.json_option
def reconstruct(picture: str, model: str, out: str, stride: int, as_json: bool) -> None:
    """Rebuild PICTURE from its coded patches; writes .npy, .png or .tif."""
    from dsc.dictionary.reconstruct import reconstruct_file

    summary = reconstruct_file(load_dictionary(model), picture, out, stride)
    if as_json:
        console.print_json(summary)
    else:
        console.say(f"{out}: mse {summary['mse']:.6g} per pixel against {picture}")


@main.command()
@click.argument("path")
@console.json_option
def info(path: str, as_json: bool) -> None:
    """Say what is in a patch set, a model, codes, or a run folder."""
    described = describe(path)
    if as_json:
        console.print_json(described)
    else:
        for name, value in described.items():
            console.say(f"{name:<20} {value}")


@main.command()
@click.option("--out", "-o", default="dsc-demo", show_default=True, help="Folder to make.")
@console.json_option
def demo(out: str, as_json: bool) -> None:
    """Show what it does, on pictures that come with scikit-image: under a minute, no download."""
    from dsc.experiments import run_demo
    from dsc.report import closing_words, write_demo

    finished = run_demo(Path(out), lambda text: console.say(text, as_json))
    summary = write_demo(finished)
    console.say(closing_words(finished), as_json)
    if as_json:
        console.print_json(summary)


@main.command()
@click.option("--quick", is_flag=True, help="Fewer patches: under 20 seconds.")
@click.option("--system", is_flag=True, help="Threads, Dask overhead, and the whole of *net*.")
@click.option("--scale", is_flag=True, help="Memory at 1 and at 20 million patches (minutes).")
@console.json_option
def bench(quick: bool, system: bool, scale: bool, as_json: bool) -> None:
    """Time rotational coding and learning against other implementations."""
    from dsc.bench import run_bench

    which = "scale" if scale else "system" if system else "coding"
    summary, text = run_bench(which, quick)
    console.print_json(summary) if as_json else console.say(text)
