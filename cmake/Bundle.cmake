# bundle(FOLDER ENTRY OUT): the modules of a folder as one, so that a browser fetches one file and not fifteen. Each module
# becomes a function that gives what it exports, after those it imports:
#
#   import { el } from "./dom.js";     const { el } = module_dom;
#   export function show(..)           function show(..), and return { .., show } at the end
#
# Imports are `import { a, b } from "./x.js";` or `import * as x from "./x.js";`, exports stand before a declaration;
# anything else is an error here and not in the browser.
function(bundle_module folder name)
  get_property(seen GLOBAL PROPERTY bundle_seen)
  if(name IN_LIST seen)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY bundle_seen ${name})
  file(READ "${folder}/${name}.js" text)
  string(REGEX MATCHALL "from \"\\./[a-z]+\\.js\"" others "${text}")
  foreach(other ${others})
    string(REGEX REPLACE ".*/([a-z]+)\\.js.*" "\\1" other "${other}")
    bundle_module("${folder}" ${other})
  endforeach()

  string(REGEX MATCHALL "\nexport (async function|function|class|const) [A-Za-z]+" exported "${text}")
  list(TRANSFORM exported REPLACE ".* " "")
  list(JOIN exported ", " exported)
  string(REGEX REPLACE "import \\* as ([a-z]+) from \"\\./([a-z]+)\\.js\";" "const \\1 = module_\\2;" text "${text}")
  string(REGEX REPLACE "import (\\{[^}]*\\}) from \"\\./([a-z]+)\\.js\";" "const \\1 = module_\\2;" text "${text}")
  string(REGEX REPLACE "\nexport (async function|function|class|const) " "\n\\1 " text "${text}")
  if(text MATCHES "\n(import|export)[ {*]")
    message(FATAL_ERROR "${name}.js: an import or export that cmake/Bundle.cmake does not know")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY bundle_text
    "const module_${name} = (() => {\n${text}return { ${exported} };\n})();\n\n")
endfunction()

function(bundle folder entry out)
  set_property(GLOBAL PROPERTY bundle_seen "")
  set_property(GLOBAL PROPERTY bundle_text "")
  bundle_module("${folder}" "${entry}")
  get_property(text GLOBAL PROPERTY bundle_text)
  file(WRITE "${out}" "${text}")
endfunction()
