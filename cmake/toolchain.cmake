# How everything is compiled: sanitizers, and the tools that make it faster where they are there.
include(CheckLinkerFlag)

find_program(LAYLINE_CCACHE ccache)
if(LAYLINE_CCACHE)
  # Without these allowances a precompiled header makes ccache miss every file.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LAYLINE_CCACHE})
endif()

foreach(linker mold lld)
  find_program(LAYLINE_${linker} NAMES ${linker} ld.${linker})
  if(LAYLINE_${linker})
    check_linker_flag(CXX -fuse-ld=${linker} LAYLINE_LINKS_WITH_${linker})
    if(LAYLINE_LINKS_WITH_${linker})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endif()
endforeach()

if(LAYLINE_SANITIZE)
  add_compile_options(-fsanitize=${LAYLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LAYLINE_SANITIZE})
endif()
if(LAYLINE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
