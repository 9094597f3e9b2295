# The commit stands in a generated header; without git it reads "unknown".
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --short HEAD
  OUTPUT_VARIABLE EXL3_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT EXL3_COMMIT)
  set(EXL3_COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/exl3_version.h CONTENT
"#pragma once
#define EXL3_VERSION \"@PROJECT_VERSION@\"
#define EXL3_COMMIT \"@EXL3_COMMIT@\"
" @ONLY)
include_directories(${PROJECT_BINARY_DIR}/generated)
