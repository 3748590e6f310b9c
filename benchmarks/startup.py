"""How long a fresh process takes for `import fairveil` and for `fairveil --help`, beside Python
alone. Aim: under 0.3 s."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15
JOBS = {
    "python alone": ["-c", "pass"],
    "import fairveil": ["-c", "import fairveil"],
    "import fairveil; Promise, events": [
        "-c",
        "import fairveil as fv; fv.Promise; fv.privacy.events.Gaussian",
    ],
    "fairveil --help": ["-m", "fairveil", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    for arguments in JOBS.values():
        seconds(arguments)  # warms the caches of the file system and of compiled modules
    times: dict[str, list[float]] = {name: [] for name in JOBS}
    for _ in range(RUNS):
        for name, arguments in JOBS.items():
            times[name].append(seconds(arguments))
    for name, values in times.items():
        print(
            f"{name:34} median {statistics.median(values):.3f} s   slowest {max(values):.3f} s   "
            f"of {RUNS}"
        )


if __name__ == "__main__":
    main()
