# The Python package: an extension module against the stable ABI, and a wheel around it. The module
# holds the libraries and the verbs. Debian's python3 comes first, since its NumPy is the one that tools/deps installs; another is
# taken where that has none. Without a Python that has NumPy and headers there is no package.
#
#   CGAM_PYTHON       the interpreter that builds and tests
#   python_module     build/python/cgam/: the package as it is in the wheel
if(CMAKE_CROSSCOMPILING) # the headers at hand are another machine's
  return()
endif()
set(CGAM_PYTHON "" CACHE FILEPATH "Interpreter with NumPy that builds and tests the Python package")
set(probe "import numpy, setuptools, sysconfig, os
where = sysconfig.get_path('include')
assert os.path.exists(os.path.join(where, 'Python.h'))
import sys
assert sys.version_info >= (3, 11)
print(where)")
find_program(other_python NAMES python3)
mark_as_advanced(other_python)
foreach(python "${CGAM_PYTHON}" /usr/bin/python3 "${other_python}")
  if(python AND NOT python_include)
    execute_process(COMMAND "${python}" -c "${probe}" OUTPUT_VARIABLE python_include
      RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      set(CGAM_PYTHON "${python}" CACHE FILEPATH "" FORCE)
    endif()
  endif()
endforeach()
if(NOT python_include)
  message(STATUS "no python3 (3.11 or later) with NumPy, setuptools and headers; the Python package is left out")
  return()
endif()

set(python_folder "${PROJECT_BINARY_DIR}/python")
file(GLOB core_sources CONFIGURE_DEPENDS python/core/*.c)
file(GLOB package_sources CONFIGURE_DEPENDS python/cgam/*)
list(FILTER package_sources EXCLUDE REGEX "__pycache__")
add_library(python_core MODULE ${core_sources})
set_target_properties(python_core PROPERTIES
  PREFIX "" OUTPUT_NAME _core SUFFIX .abi3.so C_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY "${python_folder}/cgam"
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
target_compile_definitions(python_core PRIVATE Py_LIMITED_API=0x030B0000)
target_include_directories(python_core SYSTEM PRIVATE "${python_include}")
target_link_libraries(python_core PRIVATE cgam_ask_static cgam_flags ${cgam_ask_needs})
target_link_options(python_core PRIVATE -Wl,--exclude-libs,ALL) # nothing but PyInit__core is for others

set(python_stamp "${python_folder}/stamp")
add_custom_command(OUTPUT "${python_stamp}"
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${package_sources} "${python_folder}/cgam"
  COMMAND ${CMAKE_COMMAND} -E touch "${python_stamp}"
  DEPENDS python_core ${package_sources} VERBATIM)
add_custom_target(python_module ALL DEPENDS "${python_stamp}")
add_dependencies(product python_module)

file(CONFIGURE OUTPUT "${python_folder}/version.txt" CONTENT "${PROJECT_VERSION}\n")
set(wheel_stamp "${python_folder}/wheel")
add_custom_command(OUTPUT "${wheel_stamp}"
  COMMAND ${CMAKE_COMMAND} -E rm -rf "${python_folder}/build" "${python_folder}/dist" "${python_folder}/tree"
  COMMAND ${CMAKE_COMMAND} -E env "CGAM_BUILD=${PROJECT_BINARY_DIR}"
          "${CGAM_PYTHON}" -W ignore "${PROJECT_SOURCE_DIR}/python/setup.py" --quiet
          bdist_wheel --dist-dir "${python_folder}/dist" --bdist-dir "${python_folder}/tree"
  COMMAND ${CMAKE_COMMAND} -E touch "${wheel_stamp}"
  DEPENDS "${python_stamp}" python/setup.py "${python_folder}/version.txt"
  WORKING_DIRECTORY "${python_folder}" VERBATIM COMMENT "Packing the wheel")
add_custom_target(wheel ALL DEPENDS "${wheel_stamp}")
add_dependencies(wheel python_module) # or both targets copy the package into place at once

# Where the system's python3 looks, below the prefix: lib/python3.11/dist-packages on Debian.
execute_process(COMMAND "${CGAM_PYTHON}" -c "
import sysconfig
scheme = 'posix_local' if 'posix_local' in sysconfig.get_scheme_names() else 'posix_prefix'
print(sysconfig.get_path('platlib', scheme, vars={'base': '', 'platbase': '', 'installed_base': ''}).removeprefix('/local').lstrip('/'))"
  OUTPUT_VARIABLE python_site OUTPUT_STRIP_TRAILING_WHITESPACE)
