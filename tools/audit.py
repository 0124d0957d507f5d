#!/usr/bin/env python3
"""Looks for known vulnerabilities in the dependencies of Sawhorse and its sandbox: make audit.

Exit status: 0 none is known, 1 some are known, 3 a database could not be reached, so not everything was examined. 1
takes precedence over 3.
"""

import json
import subprocess
import sys

CLEAN, VULNERABLE, UNREACHABLE = 0, 1, 3


def main(pip_audit):
    results = [vulncheck(module) for module in (".", "sandbox", "sandbox/measure", "sandbox/karpenter", "tools/karpenter", "examples")]
    results += [pip(pip_audit, f"sandbox/python/{name}.txt") for name in ("ministack", "tools", "audit")]
    results.append(npm())
    return VULNERABLE if VULNERABLE in results else max(results)


def run(command, folder="."):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError as missing:  # pip-audit could not be installed
        return subprocess.CompletedProcess(command, 127, "", f"error: {missing}")


def vulncheck(module):
    """Go's own database. Only vulnerabilities that the code calls count."""
    modfile = "/".join([".."] * (0 if module == "." else module.count("/") + 1) + ["tools/go.mod"])
    done = run(["go", "tool", f"-modfile={modfile}", "govulncheck", "./..."], module)
    if done.returncode == 0:
        return tell(CLEAN, f"Go module {module}", "no known vulnerability is called")
    if done.returncode == 3:
        return tell(VULNERABLE, f"Go module {module}", done.stdout)
    return unreached(f"Go module {module}", done)


def pip(pip_audit, requirements):
    """PyPI's database. pip-audit skips packages that PyPI does not know. They must not be reported as free of
    vulnerabilities.
    """
    done = run([pip_audit, "--disable-pip", "--no-deps", "--progress-spinner", "off", "--format", "json", "-r", requirements])
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return unreached(requirements, done)
    found = [f"{p['name']} {p['version']}: {v['id']}" for p in packages for v in p.get("vulns", [])]
    if found:
        return tell(VULNERABLE, requirements, "\n".join(found))
    skipped = [p for p in packages if "skip_reason" in p]
    if skipped:
        return tell(UNREACHABLE, requirements, f"NOT LOOKED AT: {len(skipped)} of {len(packages)} packages; {skipped[0]['skip_reason']}")
    return tell(CLEAN, requirements, "no known vulnerability")


def npm():
    """npm's database."""
    done = run(["npm", "audit", "--package-lock-only", "--json"])
    try:
        found = json.loads(done.stdout)["vulnerabilities"]
    except (ValueError, KeyError):
        return unreached("package-lock.json", done)
    if found:
        return tell(VULNERABLE, "package-lock.json", "\n".join(f"{name}: {about['severity']}" for name, about in found.items()))
    return tell(CLEAN, "package-lock.json", "no known vulnerability")


def unreached(what, done):
    said = [line for line in (done.stderr or done.stdout).splitlines() if "error" in line.lower() or "fetching" in line] or ["no reason was given"]
    return tell(UNREACHABLE, what, f"NOT LOOKED AT: {said[0]}")


def tell(result, what, text):
    print(f"{what}: {text.strip()}")
    return result


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
