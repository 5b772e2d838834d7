// Headless Chromium, as far as reports need it.
#pragma once

#include <map>
#include <string>

namespace layline::app {

// The first of chromium, chromium-browser, google-chrome and google-chrome-stable on PATH; "" when there is none.
std::string find_browser();

struct ChartImage {
  std::string svg, png;  // contents of the files
};

// Opens an export page (report::to_export_page) in the browser and takes its charts, by id. Throws base::RunError when
// the browser fails or a chart cannot be drawn.
std::map<std::string, ChartImage> draw_charts(const std::string& browser, const std::string& page);

// Bytes of base64 text; other characters are passed over.
std::string decode_base64(const std::string& text);

}  // namespace layline::app
