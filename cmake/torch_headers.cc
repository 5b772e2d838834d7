// Gives layline_torch, which owns the precompiled torch headers, something to compile.
#include <ATen/ATen.h>
