"""Lets `import torch` work on a CPU without CUDA's libraries: see scripts/unpack_wheels.sh.

Empty libraries with the names of those that libtorch_cuda is linked with are loaded first, so that the loader looks for
no others; what they lack is then only looked up when it is called, which happens on a GPU alone.
"""

import ctypes
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
for _name in sorted(os.listdir(_folder)):
    if ".so." in _name:
        ctypes.CDLL(os.path.join(_folder, _name))
sys.setdlopenflags(os.RTLD_LAZY)
