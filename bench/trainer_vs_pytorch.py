#!/usr/bin/env python3
"""build/layline-train against PyTorch, and against itself on other layouts.

  scripts/python.sh bench/trainer_vs_pytorch.py [--only pytorch,ranks,start] [--peers plain,plain-compile] [--json]

  pytorch  a training step of --config (small) in bf16 with fp32 master weights, on --threads (2) threads, against the
           peers of bench/peers/peer_llama.py
  ranks    a step of tiny at a global batch of 16: two data-parallel ranks of one thread against one rank of two
  start    seconds from the start of `layline train --nproc 4` to the moment its first step begins, and to that step's end

What is compared takes turns, step by step, in processes that live as long as the comparison: the machine's moods meet
all alike. Quoted are medians. A process of layline-train is told to train a step by a line on its standard input
(--step-on-stdin), and answers with a line of JSON that has step_seconds in it.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "peers"))
import peer_llama
import torch

STEPS_IN_DATA = 64
GLOBAL_BATCH = 16
START_REPEATS = 5
ANSWER_SECONDS = 600


def huggingface_config(config):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": config["hidden"],
        "intermediate_size": config["ffn"], "num_hidden_layers": config["layers"],
        "num_attention_heads": config["heads"], "num_key_value_heads": config["heads"],
        "vocab_size": config["vocabulary"], "max_position_embeddings": config["sequence"],
        "rms_norm_eps": peer_llama.NORM_EPSILON, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": config["tied"],
    }  # fmt: skip


def write_tokens(prefix, config, batch):
    """Random tokens in Megatron's format, one document."""
    count = STEPS_IN_DATA * batch * config["sequence"] + 1
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(config["vocabulary"], (count,), generator=generator)
    with open(f"{prefix}.bin", "wb") as file:
        file.write(tokens.to(torch.int32).numpy().tobytes())
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 1, 2))
        file.write(struct.pack("<iqqq", count, 0, 0, 1))


def write_run(folder, config, layout, batch, **other):
    """RUN.json, and its data; the path."""
    prefix = folder / f"tokens{config['vocabulary']}x{batch}"
    if not prefix.with_suffix(".idx").exists():
        write_tokens(prefix, config, batch)
    run = {
        "model": huggingface_config(config), "layout": layout, "sequence_length": config["sequence"],
        "global_batch": batch, "steps": STEPS_IN_DATA, "precision": "bf16", "data": {"train": str(prefix)}, **other,
    }  # fmt: skip
    path = folder / f"run{len(list(folder.glob('run*.json')))}.json"
    path.write_text(json.dumps(run, indent=2))
    return path


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Layline:
    """Ranks of layline-train that train a step when they are told to."""

    def __init__(self, name, program, run, ranks, threads):
        self.name = name
        port = free_port()
        self.ranks = [self._start(program, run, rank, ranks, threads, port) for rank in range(ranks)]

    @staticmethod
    def _start(program, run, rank, ranks, threads, port):
        environment = {
            **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": str(threads),
        }  # fmt: skip
        return subprocess.Popen(
            [program, run, "--step-on-stdin"], env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
        )  # fmt: skip

    def step(self):
        """Seconds of a step, by layline-train's own clock."""
        try:
            for process in self.ranks:
                process.stdin.write(b"\n")
                process.stdin.flush()
            for line in self.ranks[0].stdout:
                if line.startswith(b"{"):
                    return json.loads(line)["step_seconds"]
        except BrokenPipeError:
            pass
        sys.exit(f"{self.name}: layline-train ended with {self.ranks[0].wait()} before its last step")

    def close(self):
        for process in self.ranks:
            process.stdin.close()
        for process in self.ranks:
            process.terminate()
        for process in self.ranks:
            process.wait()


class Peer:
    def __init__(self, name, config):
        self.name = f"PyTorch, {name}"
        self.trainer = peer_llama.Trainer(name, config, "master")

    def step(self):
        start = time.perf_counter()
        self.trainer.step()
        return time.perf_counter() - start

    def close(self):
        pass


def take_turns(contestants, steps, warmup, tokens):
    """A row for each contestant; `against_first` is the median of ratios of steps side by side."""
    with contextlib.ExitStack() as stack:
        for contestant in contestants:
            stack.callback(contestant.close)
        turns = [[contestant.step() for contestant in contestants] for _ in range(warmup + steps)][warmup:]
    rows = []
    for contestant, seconds in zip(contestants, zip(*turns)):
        median = statistics.median(seconds)
        rows.append(
            dict(
                name=contestant.name, median_step_seconds=median, min_step_seconds=min(seconds),
                tokens_per_second=tokens / median,
                time_against_first=statistics.median(mine / turn[0] for mine, turn in zip(seconds, turns)),
            )
        )  # fmt: skip
    return rows


def against_pytorch(arguments, folder):
    torch.set_num_threads(arguments.threads)
    config = peer_llama.CONFIGS[arguments.config]
    run = write_run(folder, config, f"dp1 tp1 pp1 mb{config['batch']}", config["batch"])
    contestants = [Layline("layline-train", arguments.program, run, 1, arguments.threads)]
    contestants += [Peer(name, config) for name in arguments.peers.split(",")]
    rows = take_turns(contestants, arguments.steps, arguments.warmup, config["batch"] * config["sequence"])
    return dict(config=arguments.config, precision="bf16", threads=arguments.threads, contestants=rows)


def against_itself(arguments, folder):
    config = peer_llama.CONFIGS["tiny"]
    contestants = []
    for ranks, threads in ((2, 1), (1, 2)):
        layout = f"dp{ranks} tp1 pp1 mb{config['batch']}"
        run = write_run(folder, config, layout, GLOBAL_BATCH)
        contestants.append(Layline(f"{layout}, OMP_NUM_THREADS={threads}", arguments.program, run, ranks, threads))
    rows = take_turns(contestants, arguments.steps, arguments.warmup, GLOBAL_BATCH * config["sequence"])
    return dict(config="tiny", global_batch=GLOBAL_BATCH, contestants=rows)


def first_step_seconds(arguments, run, metrics):
    """Until it begins, and until its row is in the metrics."""
    metrics.unlink(missing_ok=True)
    start = time.perf_counter()
    command = [arguments.program.parent / "layline", "train", run, "--nproc", "4"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not (metrics.exists() and metrics.stat().st_size > 0):
            if process.poll() is not None or time.perf_counter() - start > ANSWER_SECONDS:
                sys.exit(f"{' '.join(map(str, command))}: no first step, exit code {process.poll()}")
            time.sleep(0.002)
        seconds = time.perf_counter() - start
        process.terminate()
    return seconds - json.loads(metrics.read_text().splitlines()[0])["step_seconds"], seconds


def start_of_four(arguments, folder):
    metrics = folder / "metrics.jsonl"
    run = write_run(folder, peer_llama.CONFIGS["tiny"], "dp2 tp2 pp1 mb4", GLOBAL_BATCH, metrics=str(metrics))
    begin, end = zip(*(first_step_seconds(arguments, run, metrics) for _ in range(START_REPEATS)))
    return dict(
        ranks=4, layout="dp2 tp2 pp1 mb4", median_seconds_to_begin=statistics.median(begin),
        max_seconds_to_begin=max(begin), median_seconds_to_end=statistics.median(end),
    )  # fmt: skip


COMPARISONS = {"pytorch": against_pytorch, "ranks": against_itself, "start": start_of_four}


def print_table(name, result):
    contestants = result.pop("contestants", None)
    print(f"{name}: " + ", ".join(f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                                  for key, value in result.items()))  # fmt: skip
    if contestants:
        width = max(len(row["name"]) for row in contestants)
        print(f"  {'':{width}s}  step ms   least     tok/s    time")
        for row in contestants:
            print(
                f"  {row['name']:{width}s} {row['median_step_seconds'] * 1e3:8.1f} {row['min_step_seconds'] * 1e3:7.1f}"
                f" {row['tokens_per_second']:9,.0f} {row['time_against_first']:6.2f}x"
            )
    print(flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(COMPARISONS), help="some of %(default)s")
    parser.add_argument("--peers", default="plain,plain-compile", help="of peer_llama.py")
    parser.add_argument("--config", default="small", choices=peer_llama.CONFIGS)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "layline-train")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    unknown = set(arguments.only.split(",")) - set(COMPARISONS)
    if unknown:
        parser.error(f"--only {', '.join(sorted(unknown))}: there are {', '.join(COMPARISONS)}")
    if arguments.warmup + arguments.steps > STEPS_IN_DATA:
        parser.error(f"--steps: at most {STEPS_IN_DATA - arguments.warmup}")
    if not arguments.program.exists():
        parser.error(f"no {arguments.program}: run make")
    return arguments


def main():
    arguments = parse()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only.split(","):
            results[name] = COMPARISONS[name](arguments, pathlib.Path(folder))
            if not arguments.json:
                print_table(name, results[name])
    if arguments.json:
        print(json.dumps({"schema_version": 1, **results}))


if __name__ == "__main__":
    main()
