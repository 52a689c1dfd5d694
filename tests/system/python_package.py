"""What pip would build can be configured, and has every file of python/weft: python_package.py MESON SOURCE_ROOT"""
import json
import pathlib
import subprocess
import sys
import tempfile

meson, root = sys.argv[1], pathlib.Path(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([meson, "setup", folder, root, "-Dpython=enabled", "-Dpython_package=true", "-Dwerror=false"], capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-500:])
        sys.exit(1)
    listed = json.loads(subprocess.run([meson, "introspect", folder, "--installed"], check=True, capture_output=True, text=True).stdout)
package = root / "python/weft"
wanted = {p.resolve() for p in package.rglob("*.py")} | {(package / "py.typed").resolve()}
missing = wanted - {pathlib.Path(p).resolve() for p in listed}
for p in sorted(missing):
    print(f"FAIL: the package lacks {p.relative_to(root)}")
sys.exit(bool(missing))
