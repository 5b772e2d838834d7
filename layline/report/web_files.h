// The scripts and styles of HTML reports, which are part of the program (built from page/ and third_party/vega).
#pragma once

#include <string_view>

namespace layline::report {

std::string_view vega_script();
std::string_view vega_lite_script();
std::string_view charts_script();  // page/charts.js
std::string_view page_script();    // page/page.js
std::string_view export_script();  // page/export.js
std::string_view page_style();     // page/page.css

}  // namespace layline::report
