// Text made harmless for where it goes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace layline::report {

// For HTML text and attributes in double quotes.
std::string escape_html(std::string_view text);

// JSON on one line that is safe inside <script>: no '<', so neither "</script" nor "<!--". Bytes that are no UTF-8
// become U+FFFD.
std::string script_json(const nlohmann::json& value);

// For a cell of a Markdown table.
std::string escape_markdown(std::string_view text);

}  // namespace layline::report
