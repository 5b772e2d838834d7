// The assembler reads the files: some are longer than a string literal may be.
#include "layline/report/web_files.h"

#define LAYLINE_EMBED(name, file)                                                                  \
  __asm__(                                                                                         \
      ".pushsection .rodata\n"                                                                     \
      ".global layline_report_" #name                                                              \
      "_begin\n"                                                                                   \
      ".global layline_report_" #name                                                              \
      "_end\n"                                                                                     \
      "layline_report_" #name "_begin:\n.incbin \"" file                                           \
      "\"\n"                                                                                       \
      "layline_report_" #name "_end:\n.byte 0\n.popsection");                                      \
  extern "C" const char layline_report_##name##_begin[];                                           \
  extern "C" const char layline_report_##name##_end[];                                             \
  namespace layline::report {                                                                      \
  std::string_view name() { return {layline_report_##name##_begin, layline_report_##name##_end}; } \
  }

LAYLINE_EMBED(vega_script, LAYLINE_VEGA_DIR "/vega.min.js")
LAYLINE_EMBED(vega_lite_script, LAYLINE_VEGA_DIR "/vega-lite.min.js")
LAYLINE_EMBED(charts_script, LAYLINE_PAGE_DIR "/charts.js")
LAYLINE_EMBED(page_script, LAYLINE_PAGE_DIR "/page.js")
LAYLINE_EMBED(export_script, LAYLINE_PAGE_DIR "/export.js")
LAYLINE_EMBED(page_style, LAYLINE_PAGE_DIR "/page.css")
