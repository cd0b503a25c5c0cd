# SPDX-License-Identifier: MIT
# `make uninstall`: removes the files that install_manifest.txt names, and the directories that the
# installation made (directories.cmake), if they are empty. It leaves alone what others wrote:
# policies, history, state. With DESTDIR as for `make install`.
# Runs in the build directory.
if(NOT EXISTS install_manifest.txt)
  message(FATAL_ERROR "uninstall: ${CMAKE_CURRENT_BINARY_DIR}/install_manifest.txt: no such file: "
    "expected a build directory in which 'make install' was run")
endif()
# A host whose /etc/ld.so.preload names a missing library prints an error at the start of each program.
set(preload "$ENV{DESTDIR}/etc/ld.so.preload")
if(EXISTS "${preload}")
  file(STRINGS "${preload}" preloaded REGEX "librdma_intercept\\.so")
  if(preloaded)
    message(FATAL_ERROR "uninstall: ${preload} names librdma_intercept.so: expected a host that does not "
      "load it. Remove that line first:\n  rdma_intercept disable\nor\n  sed -i '/librdma_intercept/d' ${preload}")
  endif()
endif()
file(STRINGS install_manifest.txt files)
foreach(file ${files})
  if(EXISTS "$ENV{DESTDIR}${file}" OR IS_SYMLINK "$ENV{DESTDIR}${file}")
    file(REMOVE "$ENV{DESTDIR}${file}")
    message(STATUS "Removed: $ENV{DESTDIR}${file}")
  endif()
endforeach()
file(REMOVE install_manifest.txt)
if(EXISTS install_directories.txt)
  file(STRINGS install_directories.txt directories)
  list(REMOVE_DUPLICATES directories)
  list(SORT directories ORDER DESCENDING) # a directory comes after those in it
  foreach(directory ${directories})
    file(GLOB entries "$ENV{DESTDIR}${directory}/*" "$ENV{DESTDIR}${directory}/.[!.]*")
    if(IS_DIRECTORY "$ENV{DESTDIR}${directory}" AND NOT entries)
      file(REMOVE_RECURSE "$ENV{DESTDIR}${directory}")
      message(STATUS "Removed: $ENV{DESTDIR}${directory}")
    endif()
  endforeach()
  file(REMOVE install_directories.txt)
endif()
