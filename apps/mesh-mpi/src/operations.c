/* Operations of MPI that are macros, under names that can be linked. */
#include <mpi.h>

const MPI_Op metes_mpi_replace = MPI_REPLACE;
const MPI_Op metes_mpi_no_op = MPI_NO_OP;
