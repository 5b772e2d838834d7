// Randomness as functions: the same bits for the same arguments, on every machine and in every version.
#pragma once

#include <cstdint>

namespace layline::trainer::data {

// A bijection of 64 bits in which every bit of the argument changes half of the result: the finalizer of SplitMix64
// (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195; constants of Stafford's variant 13).
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A number from two.
inline uint64_t mix(uint64_t a, uint64_t b) { return mix(mix(a) ^ b); }

}  // namespace layline::trainer::data
