"""Point the ROS wheels' exported CMake targets at this machine's Python and numpy headers."""

from pathlib import Path
import re
import sys
import sysconfig

import numpy as np

PYTHON_HEADERS = re.compile(r'/opt/python/cp\d+-cp\d+/include/python3\.\d+')
NUMPY_HEADERS = re.compile(
    r'/opt/python/cp\d+-cp\d+/lib/python3\.\d+/site-packages/numpy/(?:_core|core)/include'
)


def main() -> int:
    share = Path(sys.prefix) / 'share'
    changed = 0
    for path in sorted(share.rglob('*.cmake')):
        before = path.read_text(encoding='utf-8', errors='surrogateescape')
        after = NUMPY_HEADERS.sub(lambda _: np.get_include(), before)
        after = PYTHON_HEADERS.sub(lambda _: sysconfig.get_paths()['include'], after)
        if after != before:
            path.write_text(after, encoding='utf-8', errors='surrogateescape')
            changed += 1
    print(f'{changed} CMake files under {share} adjusted')
    return 0


if __name__ == '__main__':
    sys.exit(main())
