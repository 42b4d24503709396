# The dependencies of the library. tools/deps installs them on Debian.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
set(cgam_modules jansson libzip libb2)
set(cgam_lm_modules sqlite3 libsodium)
set(cgam_ask_modules liblbfgs)
foreach(library cgam cgam_lm cgam_ask) # each needs what those before it need
  foreach(module ${${library}_modules})
    pkg_check_modules(${module} REQUIRED QUIET IMPORTED_TARGET ${module})
    list(APPEND needs PkgConfig::${module})
  endforeach()
  set(${library}_needs ${needs} Threads::Threads m ${CMAKE_DL_LIBS})
endforeach()
foreach(module libmicrohttpd libseccomp) # the program alone
  pkg_check_modules(${module} REQUIRED QUIET IMPORTED_TARGET ${module})
endforeach()

# BLAS and LAPACK are loaded at run time (src/base/blas.h), and so is liblinear, which would bring BLAS
# along: only headers are needed here. liblinear has neither a pkg-config file nor a CMake package, and
# its structs change with its version, so the name of the one at hand is remembered.
foreach(module openblas lapacke)
  pkg_check_modules(${module} REQUIRED QUIET ${module})
  list(APPEND guest_includes ${${module}_INCLUDE_DIRS})
endforeach()
find_library(linear_library linear REQUIRED)
find_path(linear_include linear.h REQUIRED)
mark_as_advanced(linear_library linear_include)
file(REAL_PATH "${linear_library}" linear_file)
string(REGEX MATCH "[^/]*\\.so\\.[0-9]+" linear_name "${linear_file}")
target_include_directories(cgam_flags SYSTEM INTERFACE ${guest_includes} ${linear_include})

# Downloads of tools/: headers of SUNDIALS, libllama, uPlot. CGAM_CACHE is for builds that see no home, as Debian's do.
set(CGAM_CACHE "" CACHE PATH "Folder of what tools/ downloaded, if it is not the user's cache")
if(CGAM_CACHE)
  set(user_cache "${CGAM_CACHE}")
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(user_cache "$ENV{XDG_CACHE_HOME}/cgam")
else()
  set(user_cache "$ENV{HOME}/.cache/cgam")
endif()

# SUNDIALS has no pkg-config files, and its CMake package looks for MPI and OpenMP that we do not use. libsundials_cvodes
# is CVODE with adjoints (both define the same names, so only one is linked) and holds the vectors, matrices and solvers
# that go with it; version 7 moved the common part into `core`.
find_library(sundials_cvodes sundials_cvodes PATHS "${user_cache}/sundials/lib")
find_library(sundials_core sundials_core)
find_path(sundials_include cvodes/cvodes.h PATHS "${user_cache}/sundials/include")
mark_as_advanced(sundials_cvodes sundials_core sundials_include)
if(NOT sundials_cvodes OR NOT sundials_include)
  message(FATAL_ERROR "SUNDIALS is missing (libsundials_cvodes, cvodes/cvodes.h); try tools/deps")
endif()
foreach(part cvodes core)
  if(sundials_${part})
    file(REAL_PATH "${sundials_${part}}" file) # a link from the cache would become a run path
    list(APPEND sundials_libraries "${file}")
    # By its file name: without libsundials-dev there is no libsundials_cvodes.so for -lsundials_cvodes to find.
    get_filename_component(name "${file}" NAME)
    string(REGEX REPLACE "(\\.so\\.[0-9]+).*" "\\1" name "${name}")
    string(APPEND pc_sundials "-l:${name} ")
  endif()
endforeach()
add_library(cgam_sundials INTERFACE)
target_include_directories(cgam_sundials SYSTEM INTERFACE ${sundials_include})
target_link_libraries(cgam_sundials INTERFACE ${sundials_libraries})

# libllama is loaded at run time; only its headers are needed here, and without them the `lm` verbs
# say so. CGAM_LLAMA_ROOT (or the variable CGAM_LLAMA) is a directory that holds include/llama.h or
# llama.h; else pkg-config; else what tools/llama put into the user's cache.
set(CGAM_LLAMA_ROOT "$ENV{CGAM_LLAMA}" CACHE PATH "Directory of libllama and its headers")
pkg_check_modules(llama QUIET llama)
set(llama_cache "${user_cache}/llama-3.22.1")
find_path(llama_include llama.h NO_CACHE NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
  PATHS "${CGAM_LLAMA_ROOT}/include" "${CGAM_LLAMA_ROOT}" "${CGAM_LLAMA_ROOT}/../include"
        ${llama_INCLUDE_DIRS} "${llama_INCLUDEDIR}" "${llama_cache}/include")
if(llama_include AND NOT EXISTS "${llama_include}/ggml.h")
  message(STATUS "${llama_include}/llama.h has no ggml.h beside it; building without it")
  unset(llama_include)
endif()

# MPI carries the messages of `cgam-mpi` and libcgam_mpi; without it they are not built.
find_package(MPI QUIET COMPONENTS C)
if(NOT MPI_C_FOUND)
  message(STATUS "without MPI (libopenmpi-dev) cgam-mpi and libcgam_mpi are not built")
endif()
