# SPDX-License-Identifier: MIT
# A toolchain for packages: the compiler of this machine, headers and libraries of packaging/sysroot.
# RDMA_INTERCEPT_SYSROOT is that directory, RDMA_INTERCEPT_ARCH amd64 or arm64.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RDMA_INTERCEPT_SYSROOT RDMA_INTERCEPT_ARCH)
set(processor_of_amd64 x86_64)
set(processor_of_arm64 aarch64)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${processor_of_${RDMA_INTERCEPT_ARCH}})
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_COMPILER ${CMAKE_LIBRARY_ARCHITECTURE}-gcc)
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})
set(CMAKE_SYSROOT ${RDMA_INTERCEPT_SYSROOT})
# Programs of this machine work; everything else is looked for in the sysroot only.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${RDMA_INTERCEPT_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${RDMA_INTERCEPT_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig:${RDMA_INTERCEPT_SYSROOT}/usr/share/pkgconfig)
# The compiler's own directories come first for headers of libc, the start files and libc, unless
# others are named: a cross compiler of Debian has a later glibc there.
# A library of the sysroot may need others that are not in it; they are on the host that runs it.
set(libraries ${RDMA_INTERCEPT_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=include
  OUTPUT_VARIABLE compiler_headers OUTPUT_STRIP_TRAILING_WHITESPACE)
string(CONCAT CMAKE_C_FLAGS_INIT "-B${libraries} -nostdinc -isystem ${compiler_headers} "
  "-isystem ${RDMA_INTERCEPT_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} "
  "-isystem ${RDMA_INTERCEPT_SYSROOT}/usr/include")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -L${libraries})
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${libraries} -Wl,--unresolved-symbols=ignore-in-shared-libs")
