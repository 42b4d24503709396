# Where `make install` puts each file. No installed file contains the prefix, so a tree can be moved.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/cgam")

install(TARGETS cgam_shared cgam_lm_shared EXPORT cgam_shared
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS cgam_static cgam_lm_static cgam_ask_static EXPORT cgam_static
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/cgam DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
if(TARGET cgam)
  install(TARGETS cgam RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
if(TARGET cgam-mpi)
  install(TARGETS cgam-mpi RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(TARGETS cgam_mpi EXPORT cgam_mpi LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT cgam_mpi NAMESPACE cgam:: DESTINATION "${package_dir}")
endif()
if(TARGET man)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
          FILES_MATCHING PATTERN "*.1")
endif()
if(TARGET completions)
  install(FILES "${completions}/cgam" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${completions}/_cgam" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${completions}/cgam.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

if(TARGET wheel)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/python/cgam" DESTINATION "${python_site}"
          USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
endif()

# Documents keep their relative places, so that links between them work.
install(FILES README.md CHANGELOG.md LICENSE CITATION.cff DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING
        PATTERN "*.md" PATTERN "*.json" PATTERN "*.jsonl" PATTERN "*.png" PATTERN "*.svg" PATTERN "examples/*.c" PATTERN "mpi/*.c" PATTERN "*.ipynb" PATTERN "gallery.py" PATTERN "hamux_numbers.py")
install(FILES docs/format/network.schema.json DESTINATION "${CMAKE_INSTALL_DATADIR}/cgam")

# CMake package: cgam::cgam needs nothing else; cgam::cgam_static is there when its own
# dependencies are, since linking it means linking them.
foreach(kind shared static)
  install(EXPORT cgam_${kind} NAMESPACE cgam:: DESTINATION "${package_dir}")
endforeach()
list(JOIN cgam_modules " " package_modules)
foreach(library cgam_lm cgam_ask)
  list(APPEND package_modules ${${library}_modules})
endforeach()
list(JOIN package_modules " " package_modules)
configure_package_config_file(cmake/cgamConfig.cmake.in "${PROJECT_BINARY_DIR}/cgamConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cgamConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cgamConfig.cmake"
              "${PROJECT_BINARY_DIR}/cgamConfigVersion.cmake" DESTINATION "${package_dir}")

# pkg-config file, with the prefix said relative to where the file lies.
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
list(JOIN cgam_modules " " pc_requires)
set(pc_libs "${pc_sundials}-pthread -lm -ldl")
configure_file(cmake/cgam.pc.in "${PROJECT_BINARY_DIR}/cgam.pc" @ONLY)
foreach(library cgam_lm cgam_ask)
  list(JOIN ${library}_modules " " pc_requires)
  configure_file(cmake/${library}.pc.in "${PROJECT_BINARY_DIR}/${library}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${library}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
if(TARGET cgam_mpi)
  configure_file(cmake/cgam_mpi.pc.in "${PROJECT_BINARY_DIR}/cgam_mpi.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/cgam_mpi.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
install(FILES "${PROJECT_BINARY_DIR}/cgam.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
