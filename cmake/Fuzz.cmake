# libFuzzer programs, one per tests/fuzz/fuzz_*.c, at <build>/fuzz_*. tools/fuzz configures,
# builds and runs them.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_include_directories(${name} PRIVATE src tests)
  target_compile_options(${name} PRIVATE -UNDEBUG)
  target_link_libraries(${name} PRIVATE cgam_static cgam_flags ${library_dependencies})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
