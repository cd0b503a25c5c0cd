# SPDX-License-Identifier: MIT
# Runs first in an installation: writes down which directories the installation is going to make,
# so that `make uninstall` removes these and no others. A directory that an earlier installation of
# this build made stays on the list.
set(list_of_directories ${CMAKE_CURRENT_LIST_DIR}/install_directories.txt)
# The scripts of the installation include those of the directories below them.
set(scripts ${CMAKE_CURRENT_LIST_DIR}/cmake_install.cmake)
while(scripts)
  list(POP_FRONT scripts script)
  file(STRINGS ${script} includes REGEX "include\\(\".*/cmake_install\\.cmake\"\\)")
  foreach(include ${includes})
    string(REGEX MATCH "\"(.*)\"" found "${include}")
    list(APPEND scripts "${CMAKE_MATCH_1}")
  endforeach()
  file(STRINGS ${script} rules REGEX "file\\(INSTALL DESTINATION \"")
  foreach(rule ${rules})
    string(REGEX MATCH "DESTINATION \"([^\"]*)\"" found "${rule}")
    string(REPLACE "\${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_PREFIX}" directory "${CMAKE_MATCH_1}")
    # A directory that is installed as such goes below its destination, with its own name.
    if(rule MATCHES "TYPE DIRECTORY FILES \"[^\"]*/([^/\"]+)\"")
      string(APPEND directory "/${CMAKE_MATCH_1}")
    endif()
    while(NOT directory STREQUAL "/" AND NOT directory STREQUAL "" AND NOT EXISTS "$ENV{DESTDIR}${directory}")
      list(APPEND missing "${directory}")
      get_filename_component(directory "${directory}" DIRECTORY)
    endwhile()
  endforeach()
endwhile()
list(REMOVE_DUPLICATES missing)
foreach(directory ${missing})
  file(APPEND ${list_of_directories} "${directory}\n")
endforeach()
