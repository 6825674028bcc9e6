"""Tables of what compare.py measured."""
import statistics

MIB = 1 << 20


def median(rounds, key):
    values = [each[key] for each in rounds if each.get(key) is not None]
    return statistics.median(values) if values else None


def number(value, digits=0):
    return "" if value is None else f"{value:,.{digits}f}".replace(",", " ")


def spread(rounds, key):
    values = [each[key] for each in rounds]
    digits = 0 if statistics.median(values) >= 100 else 1
    return f"{number(statistics.median(values), digits)} [{number(min(values), digits)}..{number(max(values), digits)}]"


def faults_per_sample(each):
    return each["minor_faults"] / max(1, each["samples"])


def best(case, results, prefix, metric):
    """Of the contenders whose names begin so."""
    return max(median(rounds, metric) for name, rounds in results.items() if name.startswith(prefix))


def print_ratio(case, results, rival, aim):
    found = {metric: best(case, results, "headroom", metric) / best(case, results, rival, metric)
             for metric in ("samples_per_s", "samples_per_cpu_s")}
    print(f"  against {rival:<16}{found['samples_per_s']:>8.1f}x by the clock{found['samples_per_cpu_s']:>8.1f}x per CPU second"
          f"   aim {aim}x   {'reached' if found[case['metric']] >= aim else 'MISSED'}")


def print_case(case, results):
    print(f"\n{case['title']}")
    print(f"  {'':<16}{'samples/s':>30}{'samples/CPU s':>30}{'faults/sample':>15}{'first batch':>13}"
          f"{'new epoch':>11}{'memory':>11}")
    for name, rounds in results.items():
        if name == "ceiling":
            continue
        faults = statistics.median(faults_per_sample(each) for each in rounds)
        print(f"  {name:<16}{spread(rounds, 'samples_per_s'):>30}{spread(rounds, 'samples_per_cpu_s'):>30}{faults:>15.2f}"
              f"{number(median(rounds, 'first_batch_ms'), 1):>10} ms{number(median(rounds, 'epoch_boundary_ms'), 2):>8} ms"
              f"{number(median(rounds, 'memory_bytes') / MIB):>7} MiB")
    for what, (rate, per_sample) in case["ceilings"].items():
        reached = best(case, results, "headroom", case["metric"])
        most = median(results["ceiling"], rate) / per_sample
        print(f"  {'ceiling: ' + what:<36}{number(most):>10}  Headroom is at {100 * reached / most:.0f} %")
    for rival, aim in case["aims"].items():
        print_ratio(case, results, rival, aim)


def print_summary(chosen, results):
    """Memory, first batch and epoch boundary, which the issue asks for beside the rates."""
    print(f"\n{'':<44}{'aim':>8}")
    for case in chosen:
        rounds = results[case["name"]]
        share = median(rounds["headroom"], "memory_bytes") / median(rounds["plain w2"], "memory_bytes")
        print(f"{'memory against plain w2: ' + case['name']:<44}{'1/3':>8}{'1/' + number(1 / share, 1):>12}"
              f"   {'reached' if share <= 1 / 3 else 'MISSED'}")
    for case in chosen:
        own = results[case["name"]]["headroom"]
        if case["cold"]:
            continue
        for what, key, aim in (("first batch", "first_batch_ms", 10), ("epoch boundary", "epoch_boundary_ms", 1)):
            found = median(own, key)
            print(f"{what + ': ' + case['name']:<44}{aim:>5} ms{found:>9.2f} ms   {'reached' if found <= aim else 'MISSED'}")
