// A line over many values as text: dots of braille, two by four a cell, or stars in ASCII.
#pragma once

#include <string>
#include <vector>

#include "layline/base/text_table.h"

namespace layline::base {

struct LineChart {
  std::vector<double> values;  // in order, evenly spaced; those that are not finite are gaps
  std::string first, last;     // what is written below the two ends
  int num_rows = 5;            // of cells
};

// Lines that end in "\n", at most style.width wide: the largest and the smallest value at the left, the line, and the
// two ends below it. Where there are more values than columns, a column shows their mean. "" without a finite value.
std::string line_chart(const LineChart& chart, const TextStyle& style, int indent = 2);

}  // namespace layline::base
