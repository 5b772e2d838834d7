// toml++ without the warnings of its headers. Private to this folder.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <toml++/toml.h>
#pragma GCC diagnostic pop
