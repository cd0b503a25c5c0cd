# SPDX-License-Identifier: MIT
# Packages: `./build_all.sh package` makes .deb and .rpm files of the components of the installation.
# What they need of other packages is in the table below, in names that Debian 11 and its successors
# know; rpm finds names of libraries itself. tests/packages.sh compares the table with the programs.
set(package_components library collector monitor dashboard development)
if(RDMA_INTERCEPT_FLEET)
  list(APPEND package_components fleet)
endif()
set(name_of_library librdma-intercept)
set(name_of_collector rdma-intercept)
set(name_of_monitor rdma-intercept-monitor)
set(name_of_dashboard rdma-intercept-dashboard)
set(name_of_development librdma-intercept-dev)
set(name_of_fleet rdma-intercept-fleet)
set(rpm_name_of_development librdma-intercept-devel)

set(summary_of_library "quotas for RDMA resources, in programs")
set(summary_of_collector "quotas for RDMA resources of a host")
set(summary_of_monitor "counts RDMA objects in the kernel, and refuses them there")
set(summary_of_dashboard "metrics and web page of rdma-intercept")
set(summary_of_fleet "one RDMA policy for many hosts, on etcd")
set(summary_of_development "programs that read usage from rdma-intercept")
set(description_of_library "librdma_intercept.so counts what a program creates of RDMA resources and
refuses what exceeds a limit. It is loaded into programs by 'rdma_intercept run', by LD_PRELOAD or by
'rdma_intercept enable'. Also the library that reads usage from the collector.")
set(description_of_collector "The collector, which keeps tenants, policy and limits of a host, and the
command rdma_intercept. As installed it refuses nothing: the policy has the mode audit.")
set(description_of_monitor "rdma_monitor counts every RDMA object of every process by eBPF, and is the
guard that refuses in the kernel what exceeds limits of tenants with guard = on.")
set(description_of_dashboard "rdma_dashboard, an unprivileged client of the collector: metrics for
Prometheus, the web page, and history. Also alerts for Prometheus and a dashboard for Grafana.")
set(description_of_fleet "rdma_fleet, unprivileged, follows a policy on etcd for the collector of this host, and
divides quotas of tenants among all hosts. It starts once /etc/rdma_intercept/fleet.conf exists.")
set(description_of_development "Headers, the library to link with, and a file for pkg-config.")

set(libc "libc6 (>= 2.31)")
set(jansson "libjansson4 (>= 2.13)")
set(sqlite "libsqlite3-0 (>= 3.34)")
set(depends_of_library "${libc}")
set(depends_of_collector "${libc}, ${jansson}, ${sqlite}, libsystemd0 (>= 247), libncursesw6 (>= 6.2), libtinfo6 (>= 6.2)")
set(depends_of_monitor "${libc}, ${jansson}, libmnl0 (>= 1.0.4), libelf1 (>= 0.183) | libelf1t64, zlib1g (>= 1:1.2.11)")
set(depends_of_dashboard "${libc}, ${jansson}, ${sqlite}, libmicrohttpd12 (>= 0.9.72) | libmicrohttpd12t64")
set(depends_of_fleet "${libc}, ${jansson}, libcurl4 (>= 7.74) | libcurl4t64")
set(depends_of_development "")
# Of the same version: the command and the library know each other's shared memory.
set(own_depends_of_collector library)
set(own_depends_of_development library)
set(recommends_of_monitor ${name_of_collector})
set(recommends_of_dashboard ${name_of_collector})
set(recommends_of_fleet ${name_of_collector})
set(recommends_of_library "")
set(recommends_of_collector "")
set(recommends_of_development "")

# ---- files that only packages have, beside those of the installation
foreach(component ${package_components})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name_of_${component}})
endforeach()
install(FILES package/policy.conf DESTINATION /etc/rdma_intercept COMPONENT collector EXCLUDE_FROM_ALL)
install(FILES package/logrotate.conf RENAME rdma_intercept DESTINATION /etc/logrotate.d
  COMPONENT collector EXCLUDE_FROM_ALL)
install(FILES package/sysusers.conf RENAME rdma_intercept.conf DESTINATION lib/sysusers.d
  COMPONENT collector EXCLUDE_FROM_ALL)
install(FILES package/tmpfiles.conf RENAME rdma_intercept.conf DESTINATION lib/tmpfiles.d
  COMPONENT collector EXCLUDE_FROM_ALL)
set(configuration_of_collector /etc/rdma_intercept/policy.conf /etc/logrotate.d/rdma_intercept)

# ---- scripts: what a package does of its own, and what all of them do
set(scripts_of_library prerm postrm)
set(scripts_of_collector postinst prerm postrm)
set(scripts_of_monitor postinst prerm postrm)
set(scripts_of_dashboard postinst prerm postrm)
set(scripts_of_fleet postinst prerm postrm)
set(rpm_name_of_postinst POST_INSTALL)
set(rpm_name_of_prerm PRE_UNINSTALL)
set(rpm_name_of_postrm POST_UNINSTALL)

set(CPACK_GENERATOR DEB RPM)
set(CPACK_PACKAGE_VENDOR "rdma_intercept")
set(CPACK_PACKAGE_CONTACT "The rdma_intercept authors <rdma_intercept@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL ${package_components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_SET_DESTDIR ON) # files in /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF) # it knows this machine's release only
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
if(RDMA_INTERCEPT_ARCH)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${RDMA_INTERCEPT_ARCH})
  set(CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
endif()
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /etc/logrotate.d /usr/lib/systemd /usr/lib/systemd/system
  /usr/lib/tmpfiles.d /usr/share/locale /usr/share/locale/zh_CN
  /usr/share/locale/zh_CN/LC_MESSAGES /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/${CMAKE_INSTALL_LIBDIR})

set(directory ${CMAKE_CURRENT_BINARY_DIR}/package)
foreach(component ${package_components})
  string(TOUPPER ${component} upper)
  set(depends ${depends_of_${component}})
  set(rpm_requires "")
  foreach(other ${own_depends_of_${component}})
    list(APPEND depends "${name_of_${other}} (= ${PROJECT_VERSION})")
    set(rpm_requires "${name_of_${other}} = ${PROJECT_VERSION}")
  endforeach()
  list(JOIN depends ", " depends)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description_of_${component}}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name_of_${component}})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary_of_${component}}\n${description_of_${component}}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${recommends_of_${component}}")
  if(DEFINED rpm_name_of_${component})
    set(CPACK_RPM_${upper}_PACKAGE_NAME ${rpm_name_of_${component}})
  else()
    set(CPACK_RPM_${upper}_PACKAGE_NAME ${name_of_${component}})
  endif()
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${summary_of_${component}}")
  set(CPACK_RPM_${upper}_PACKAGE_DESCRIPTION "${description_of_${component}}")
  set(CPACK_RPM_${upper}_PACKAGE_REQUIRES "${rpm_requires}")
  set(control "")
  foreach(script ${scripts_of_${component}})
    set(file ${directory}/${component}/${script})
    file(READ package/${component}.sh own)
    file(READ package/maintainer.sh common)
    file(WRITE ${file} "#!/bin/sh\nset -e\n${own}\n${common}\nscript_${script} \"$@\"\n")
    file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
      WORLD_READ WORLD_EXECUTE)
    list(APPEND control ${file})
    set(CPACK_RPM_${upper}_${rpm_name_of_${script}}_SCRIPT_FILE ${file})
  endforeach()
  if(configuration_of_${component})
    list(JOIN configuration_of_${component} "\n" lines)
    file(WRITE ${directory}/${component}/conffiles "${lines}\n")
    list(APPEND control ${directory}/${component}/conffiles)
    list(TRANSFORM configuration_of_${component} PREPEND "%config(noreplace) "
      OUTPUT_VARIABLE CPACK_RPM_${upper}_USER_FILELIST)
  endif()
  if(component STREQUAL library)
    # The list of libraries that the linker knows follows.
    file(WRITE ${directory}/${component}/triggers "activate-noawait ldconfig\n")
    list(APPEND control ${directory}/${component}/triggers)
  endif()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${control}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS package/maintainer.sh package/library.sh
  package/collector.sh package/monitor.sh package/dashboard.sh package/fleet.sh)
include(CPack)
