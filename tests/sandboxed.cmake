# SPDX-License-Identifier: MIT
# How a test is registered: by which name, with which labels, environment and limits. Which tests
# there are is said by the directories.

# A sanitizer's run-time must come before every other preloaded library.
set(test_preload $<TARGET_FILE:rdma_intercept>)
set(test_prefix "")
set(sanitizer_runtime "")
if(RDMA_INTERCEPT_SANITIZER)
  set(runtime_address libasan.so)
  set(runtime_thread libtsan.so)
  set(prefix_address asan.)
  set(prefix_thread tsan.)
  execute_process(
    COMMAND ${CMAKE_C_COMPILER} -print-file-name=${runtime_${RDMA_INTERCEPT_SANITIZER}}
    OUTPUT_VARIABLE sanitizer_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(PREPEND test_preload "${sanitizer_runtime}:")
  set(test_prefix ${prefix_${RDMA_INTERCEPT_SANITIZER}})
endif()

set(test_environment
  HARNESS_PRELOAD=${test_preload}
  LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fakeverbs
  # Scenarios leave objects behind on purpose; the library itself never calls malloc. A process with
  # an error ends by a signal, so that who waits for it sees a crash and not an end.
  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
  # Tests compare English messages, whatever the language of their user.
  LC_ALL=C.UTF-8 LANGUAGE=
  BUILD_DIRECTORY=${CMAKE_BINARY_DIR}
  SOURCE_DIRECTORY=${PROJECT_SOURCE_DIR}
  KINDS_DEF=${PROJECT_SOURCE_DIR}/src/terms/kinds.def)

# What the thread sanitizer can see: programs with several threads in one process.
set(thread_tests unit_bucket unit_handles unit_ledger unit_polling unit_netlink process_table process_rules
  process_routes process_family process_hammer process_soak process_badinput)

# sandboxed_test(name labels command...): a test in a sandbox (sandbox.c). Labels: quick (all of them
# take a minute, without a virtual machine), daemon, kill, model, lab,
# analysis; long for those that run with "ctest -C long" only. Under a sanitizer the label is its name.
function(sandboxed_test name labels)
  if(RDMA_INTERCEPT_SANITIZER STREQUAL "thread" AND NOT name IN_LIST thread_tests AND
      NOT name MATCHES "^unit_proto_")
    return()
  endif()
  if("long" IN_LIST labels)
    set(when CONFIGURATIONS long)
  endif()
  if(RDMA_INTERCEPT_SANITIZER)
    set(labels ${prefix_${RDMA_INTERCEPT_SANITIZER}})
    string(REPLACE "." "" labels ${labels})
  endif()
  add_test(NAME ${test_prefix}${name} ${when} COMMAND sandbox ${test_prefix}${name} ${ARGN})
  # The sandbox has limits of its own; this one is for the sandbox.
  set_tests_properties(${test_prefix}${name} PROPERTIES
    LABELS "${labels}" ENVIRONMENT "${test_environment}" SKIP_RETURN_CODE 77 TIMEOUT 90000)
endfunction()
