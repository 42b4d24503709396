# Files that become part of the program, as a table of arrays (src/lab/embedded.h). Written when the
# build is configured; a change of any of them reconfigures it. src/serve/page is what the server
# shows: index.html at /, every other file under its own name, with a type by its ending (answer.c);
# its modules are bundled as main.js.
include(Bundle)
file(GLOB embedded_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src"
  src/app/completion/* src/app/about/*.txt src/app/text/*.txt src/lab/language/shipped/*
  src/lab/claims/*.txt src/lab/figures/*.gp src/lab/page/*.css src/lab/page/*.html
  src/serve/*.txt src/serve/page/*.html src/serve/page/*.css src/serve/page/*.svg)
file(GLOB page_modules CONFIGURE_DEPENDS src/serve/page/*.js)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_modules})
bundle("${PROJECT_SOURCE_DIR}/src/serve/page" main "${PROJECT_BINARY_DIR}/page/main.js")
set(embedded_arrays "")
set(embedded_rows "")
foreach(name ${embedded_files})
  set(path_of_${name} "${PROJECT_SOURCE_DIR}/src/${name}")
endforeach()

# uPlot, which tools/uplot fetches into the user's cache, is part of the page; without it the page has an
# empty script in its place and says so where a curve would be.
set(uplot_cache "${user_cache}/uplot-1.6.32")
if(EXISTS "${uplot_cache}/uplot.js")
  set(path_of_serve/page/uplot.js "${uplot_cache}/uplot.js")
  set(path_of_serve/page/uplot.css "${uplot_cache}/uplot.css")
  set(path_of_serve/page/uplot-license.txt "${uplot_cache}/LICENSE")
else()
  set(nothing "${PROJECT_BINARY_DIR}/no-uplot")
  file(WRITE "${nothing}" "/* This build has no uPlot; tools/uplot fetches it. */\n")
  foreach(name uplot.js uplot.css uplot-license.txt)
    set(path_of_serve/page/${name} "${nothing}")
  endforeach()
endif()
set(path_of_serve/page/main.js "${PROJECT_BINARY_DIR}/page/main.js")
list(APPEND embedded_files serve/page/main.js serve/page/uplot.js serve/page/uplot.css serve/page/uplot-license.txt)

foreach(name ${embedded_files})
  set(path "${path_of_${name}}")
  if(NOT path MATCHES "^${PROJECT_BINARY_DIR}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  endif()
  string(MAKE_C_IDENTIFIER "${name}" symbol)
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND embedded_arrays "static const char ${symbol}[] = {${bytes}0};\n")
  string(APPEND embedded_rows "    {\"${name}\", ${symbol}, sizeof ${symbol} - 1},\n")
endforeach()
set(embedded_source "${PROJECT_BINARY_DIR}/embedded.c")
file(CONFIGURE OUTPUT "${embedded_source}" @ONLY CONTENT "#include \"lab/embedded.h\"\n\n@embedded_arrays@
const cgam_embedded cgam_embedded_files[] = {\n@embedded_rows@    {NULL, NULL, 0},\n};\n")
