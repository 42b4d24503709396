# Files that become part of the library, as a table of arrays (src/base/embedded.h). Written when the
# build is configured, which a change of any of them brings about. src/serve/page is what the server
# shows: index.html at /, every other file under its own name, with a type by its ending (answer.c).
file(GLOB embedded_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src"
  src/app/completion/* src/lm/shipped/* src/report/*.css src/report/*.html
  src/serve/page/*.html src/serve/page/*.css src/serve/page/*.js src/serve/page/*.svg)
set(embedded_arrays "")
set(embedded_rows "")
foreach(name ${embedded_files})
  set(path "${PROJECT_SOURCE_DIR}/src/${name}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  string(MAKE_C_IDENTIFIER "${name}" symbol)
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND embedded_arrays "static const char ${symbol}[] = {${bytes}0};\n")
  string(APPEND embedded_rows "    {\"${name}\", ${symbol}, sizeof ${symbol} - 1},\n")
endforeach()
set(embedded_source "${PROJECT_BINARY_DIR}/embedded.c")
file(CONFIGURE OUTPUT "${embedded_source}" @ONLY CONTENT "#include \"base/embedded.h\"\n\n@embedded_arrays@
const cgam_embedded cgam_embedded_files[] = {\n@embedded_rows@    {NULL, NULL, 0},\n};\n")
